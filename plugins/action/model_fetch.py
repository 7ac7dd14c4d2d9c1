# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Bring a model's weights and print how far they are meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.inferops.sglang.plugins.module_utils._core.weights.fetch import RECORDS, beside
from ansible_collections.inferops.sglang.plugins.plugin_utils.followed import Followed


class ActionModule(Followed):
    """See the module of the same name."""

    def places(self, args: dict[str, Any]) -> tuple[str, str]:
        source, known = args.get("source"), [args.get(name) for name in ("root", "name", "revision")]
        folder, records = Path(*map(str, known)), None
        if isinstance(source, dict) and source.get("kind") == "folder":
            folder, records = Path(source.get("path", "")), Path(args.get("records") or RECORDS)
        elif not all(known):
            return "", ""
        proof = "" if boolean(args.get("warm", False), strict=False) else str(beside(folder, "json", records))
        return str(beside(folder, "progress", records)), proof
