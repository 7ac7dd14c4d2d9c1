"""The container settings hand on only limits that this process has."""

from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st
from inferops_lab.runtime import settings


@given(st.integers(1024, 2**31), st.sampled_from(["runc", "crun"]), st.sampled_from(["cgroupfs", "systemd"]))
def test_settings_are_toml_and_never_ask_for_more_files_than_allowed(limit, runtime, manager):
    read = tomllib.loads(settings(runtime, manager, open_files=limit))
    assert read["engine"]["runtime"] == runtime
    assert read["engine"]["cgroup_manager"] == manager
    files = read["containers"]["default_ulimits"][0]
    assert int(files.removeprefix("nofile=").split(":")[0]) <= limit
