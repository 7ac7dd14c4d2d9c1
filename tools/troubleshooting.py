#!/usr/bin/env python3
"""Write roles/nvidia_stack/TROUBLESHOOTING.md from the table of faults."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "roles" / "nvidia_stack" / "TROUBLESHOOTING.md"

if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(ROOT / "plugins" / "module_utils"))
    from _core.driver.classify import troubleshooting

    PAGE.write_text(troubleshooting(), encoding="utf-8")
