# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Processors and network of the client's machine, from what the kernel says; what it does not say is absent."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.host import HostWatch, elsewhere, interface_to

STAT = "cpu  {0} 0 0 {1} 0 0 0 0 0 0\ncpu0 {2} 0 0 {3} 0 0 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0 0 0\nintr 5\n"
DEV = "Inter-|   Receive\n face |bytes\n  eth0: {0} 1 0 0 0 0 0 0 {1} 1 0 0 0 0 0 0\n"
SNMP = "Ip: Forwarding\nIp: 1\nTcp: RtoMin RetransSegs InErrs\nTcp: 200 {0} 0\n"
ROUTE = (
    "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU\n"
    "eth0 00000000 0101A8C0 0003 0 0 0 00000000 0\nwg0 0000000A 00000000 0001 0 0 0 000000FF 0\n"
)


@pytest.fixture
def machine(tmp_path):
    for folder in ("proc/net", "sys/class/net/eth0"):
        (tmp_path / folder).mkdir(parents=True)

    def write(**files):
        for name, text in files.items():
            place = {"stat": "proc/stat", "speed": "sys/class/net/eth0/speed"}.get(name, f"proc/net/{name}")
            (tmp_path / place).write_text(text)

    write.clock = 0.0
    write.watch = lambda: HostWatch(
        "eth0",
        proc=tmp_path / "proc",
        sys=tmp_path / "sys",
        clock=lambda: write.clock,
        cpu_clocks=lambda: {"client": 0.25 * write.clock},
    )
    return write


def test_shares_since_the_reading_before(machine):
    machine(stat=STAT.format(0, 0, 0, 0), dev=DEV.format(0, 0), snmp=SNMP.format(5), speed="1000\n")
    watch = machine.watch()
    machine(stat=STAT.format(80, 120, 80, 20), dev=DEV.format(50_000_000, 1_000), snmp=SNMP.format(9))
    machine.clock = 2.0
    assert watch.read() == {
        "cpu_ratio": 0.4,
        "busiest_core_ratio": 0.8,
        "client_cpu_ratio": 0.25,
        "sent_bytes_per_s": 500,
        "received_bytes_per_s": 25_000_000,
        "link_ratio": 0.2,
        "resent_segments_per_s": 2,
    }
    machine.clock = 2.01
    assert watch.read() == {}, "too short for a share"


def test_what_the_kernel_does_not_say_is_unknown(machine):
    watch = machine.watch()
    machine.clock = 1.0
    assert {name for name, value in watch.read().items() if value is not None} == {"client_cpu_ratio"}


@pytest.mark.parametrize("speed", ["-1\n", "0\n", ""])
def test_a_link_without_a_speed_has_no_share(machine, speed):
    machine(stat=STAT.format(0, 0, 0, 0), dev=DEV.format(0, 0), speed=speed)
    watch = machine.watch()
    machine(dev=DEV.format(9, 9))
    machine.clock = 1.0
    read = watch.read()
    assert (read["link_ratio"], read["received_bytes_per_s"]) == (None, 9)


def test_the_way_to_the_server(tmp_path):
    assert interface_to("http://127.0.0.1:30000") == "lo"
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "route").write_text(ROUTE)
    assert interface_to("http://no-such-host.invalid") is None


@pytest.mark.parametrize(
    ("interface", "here", "away"),
    [("lo", None, False), ("eth0", None, True), (None, None, False), ("eth0", True, False), ("lo", False, True)],
)
def test_whose_cards_are_seen(interface, here, away):
    """A client elsewhere has cards of its own; where it cannot be told, nothing changes."""
    assert (elsewhere("http://10.1.2.3:30000", here=here, interface=interface) is not None) == away
