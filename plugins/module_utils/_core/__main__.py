# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""`python -m _core`: quiet about Ctrl-C while the modules are still being loaded, which takes longer than a finger."""

from __future__ import annotations

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .cli import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    raise SystemExit(main())
