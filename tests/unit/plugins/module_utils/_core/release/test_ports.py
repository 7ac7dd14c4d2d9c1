"""Who listens on an address, asked of the machine the tests run on."""

from __future__ import annotations

import os
import socket

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.ports import find_listener


@pytest.mark.parametrize("bound", ["127.0.0.1", "0.0.0.0"])
def test_a_listener_is_found_with_its_process(bound):
    with socket.socket() as server:
        server.bind((bound, 0))
        port = server.getsockname()[1]
        assert find_listener("127.0.0.1", port) is None
        server.listen()
        found = find_listener("127.0.0.1", port)
        assert (found.pid, found.address) == (os.getpid(), bound)
        assert f"pid {os.getpid()}" in str(found)
    assert find_listener("127.0.0.1", port) is None


def test_another_address_of_the_machine_is_not_in_the_way():
    with socket.socket() as server:
        server.bind(("127.0.0.2", 0))
        server.listen()
        port = server.getsockname()[1]
        assert find_listener("127.0.0.1", port) is None
        assert find_listener("0.0.0.0", port) is not None
