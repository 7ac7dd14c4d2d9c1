"""The wheelhouse is that of the hosts' Python, whatever Python fills it."""

from __future__ import annotations

import re

from inferops_lab import wheelhouse


def test_a_line_counts_whatever_python_downloads_it():
    hashed = " \\\n    --hash=sha256:00\n"
    lock = f"one==1.0 ; python_full_version < '3.13'{hashed}two==2{hashed}three==3;sys_platform == 'x'\n"
    assert wheelhouse.without_markers(lock) == f"one==1.0{hashed}two==2{hashed}three==3 \n"


def test_no_line_of_the_real_locks_keeps_a_marker_or_gets_lost():
    for path in (wheelhouse.TOOLS_LOCK, wheelhouse.ROUTER_LOCK, wheelhouse.EXTRA_LOCK, wheelhouse.CPU_LOCK):
        text = path.read_text()
        asked = wheelhouse.without_markers(text)
        named = re.findall(r"^([\w.-]+==[^\s;]+)", text, re.M)
        assert named == re.findall(r"^([\w.-]+==\S+)", asked, re.M)
        assert not re.findall(r"^[\w.-]+==.*;", asked, re.M)
