"""Units on every supported ansible-core and Python that this machine has: `nox`, or one: `nox -s "units-3.12(core='2.20')"`."""

from __future__ import annotations

import nox

CORES = {"2.19": ("3.11", "3.12", "3.13"), "2.20": ("3.12", "3.13"), "2.21": ("3.12", "3.13")}
PLACES = ("tests/unit/plugins", "tests/unit/roles", "tests/unit/playbooks", "tests/unit/tools")
nox.options.error_on_missing_interpreters = False


@nox.session(python=["3.11", "3.12", "3.13"])
@nox.parametrize("core", list(CORES))
def units(session: nox.Session, core: str) -> None:
    """Unit tests on one ansible-core; it needs Python 3.11 (2.19) or 3.12 (later ones)."""
    if session.python not in CORES[core]:
        session.skip(f"ansible-core {core} does not run on Python {session.python}")
    needed = ("pytest", "hypothesis", "jsonschema", "referencing", "aiohttp", "nvidia-ml-py", "PyYAML")
    session.install(f"ansible-core=={core}.*", *needed)
    session.run("pytest", *(session.posargs or PLACES))
