# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Values that parse and then stop the server before it resolves anything."""

from __future__ import annotations

from collections.abc import Iterator

from ..context import Context
from ..findings import Finding

LEVELS = ("critical", "fatal", "error", "warning", "warn", "info", "debug", "notset")
# prepare_server_args since 0.5.12, configure_logger in every release: getattr(logging, log_level.upper()).
_ASKED_IN = ("srt/server_args.py", "srt/utils/common.py", "srt/utils.py")


def log_level(ctx: Context) -> Iterator[Finding]:
    """Refuse a log level Python's logging does not have: the launcher looks it up by name and ends in AttributeError."""
    level = ctx.asked("log_level")
    if not isinstance(level, str) or level.lower() in LEVELS:
        return
    used = next((line for rel in _ASKED_IN if (line := ctx.line(rel, "getattr(logging", "log_level.upper()"))), None)
    if used is None:
        return
    spelled = ctx.parsed.explicit.get("log_level")
    yield Finding(
        "SGA103",
        "error",
        f"--log-level: {level!r} is no level of Python's logging",
        why="the launcher looks the level up by its name and stops with AttributeError or ValueError",
        do=f"write one of {', '.join(LEVELS)}",
        source=used,
        **ctx.at(spelled),
    )
