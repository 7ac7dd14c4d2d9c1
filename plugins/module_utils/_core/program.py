# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""`python -m _core.program`: quiet about Ctrl-C while the modules are still being loaded, which takes longer than a finger.

What has read a release ends without freeing it, object by object, or looking for cycles in it: that took an eighth of a check.
"""

from __future__ import annotations

import os
import signal
import sys

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .args.seldom import collecting_seldom
    from .cli import AREAS, main

    status = 130
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if not {*sys.argv[1:2]} & {*AREAS["args"]}:
            raise SystemExit(main())
        with collecting_seldom():
            status = main()
            if sys.stderr is not None:
                sys.stderr.flush()
            os._exit(status)
    except KeyboardInterrupt:
        raise SystemExit(status) from None
    finally:
        # Nor is there a finger quick enough for the end of the interpreter.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
