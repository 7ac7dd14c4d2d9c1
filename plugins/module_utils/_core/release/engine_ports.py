# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which ports a server takes besides the one of its API, as its release draws them from its arguments.

Ports that SGLang picks among the free ones (NCCL without --nccl-port) are nobody's and not listed.
Source: srt/server_args.py, PortArgs.init_new; srt/managers/data_parallel_controller.py; 0.4.6 to 0.5.23.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..engine.requirements import version_key

# ZMQ_TCP_PORT_DELTA and DP_ATTENTION_HANDSHAKE_PORT_DELTA of srt/server_args.py.
ZMQ_DELTA, HANDSHAKE_DELTA = 233, 13
LAST_PORT = 65535
ZMQ_NAMES = ("tokenizer", "detokenizer", "rpc", "metrics", "scheduler input", "load collector")


@dataclass(frozen=True)
class EnginePort:
    """A port, what it is for, and the argument that moves it."""

    port: int
    purpose: str
    flag: str


def engine_ports(version: str, argv: Sequence[str], effective: Mapping[str, Any], port: int) -> list[EnginePort]:
    """Return the ports that a server with this resolved configuration takes on its host, without the API's own.

    >>> dp = {"enable_dp_attention": True, "nnodes": 1}
    >>> [found.port for found in engine_ports("0.5.23", [], dp, 30000)]
    [30233, 30234, 30235, 30236, 30237, 30238, 30239, 30013]
    >>> engine_ports("0.5.23", [], {"nnodes": 1}, 30000)
    []
    """
    found: list[EnginePort] = []
    nccl = _value(argv, "--nccl-port")
    if nccl.isdigit():
        found.append(EnginePort(int(nccl), "NCCL", "--nccl-port"))
    given = _port_of(effective.get("dist_init_addr"))
    rank0 = not effective.get("node_rank")
    dp = bool(effective.get("enable_dp_attention")) or (effective.get("attn_dp_size") or 1) > 1
    if dp:
        found += _zmq_ports(version, given, port, "--dist-init-addr" if given else "--port", rank0=rank0)
    elif given and rank0:
        found.append(EnginePort(given, "the meeting of the ranks", "--dist-init-addr"))
    if effective.get("disaggregation_mode") == "prefill" and effective.get("disaggregation_bootstrap_port"):
        found.append(
            EnginePort(effective["disaggregation_bootstrap_port"], "disaggregation bootstrap", "--disaggregation-bootstrap-port")
        )
    if effective.get("grpc_port"):
        found.append(EnginePort(effective["grpc_port"], "gRPC", "--grpc-port"))
    return found


def _zmq_ports(version: str, given: int | None, port: int, flag: str, *, rank0: bool) -> list[EnginePort]:
    """Return the ports by which processes talk with data parallel attention: a row of them behind the one where ranks meet."""
    first = given or port + ZMQ_DELTA
    base = first + 1
    names: tuple[str, ...] = ZMQ_NAMES
    if _before(version, "0.4.9"):
        names = ("tokenizer", "detokenizer", "rpc", "scheduler input")
    elif _before(version, "0.5.13"):
        names = ZMQ_NAMES[:5]
    else:
        # The row goes the other way where it would leave the range of ports.
        reserved = 5 if _before(version, "0.5.17") else 6
        if first > LAST_PORT:
            first = port - ZMQ_DELTA
        base = first - reserved - 1 if first + reserved > LAST_PORT else first + 1
    found = [EnginePort(first, "the meeting of the ranks", flag)]
    found += [EnginePort(base + at, f"ZeroMQ, {name}", flag) for at, name in enumerate(names)]
    if rank0 and not _before(version, "0.5.5.post3"):
        found.append(EnginePort((given or port) + HANDSHAKE_DELTA, "the ports of the data parallel ranks", flag))
    return [each for each in found if each.port <= LAST_PORT]


def _before(version: str, release: str) -> bool:
    mine, other = version_key(version), version_key(release)
    return mine is not None and other is not None and mine < other


def _port_of(address: Any) -> int | None:
    """Return the port of HOST:PORT.

    >>> _port_of("[fd00::1]:5000"), _port_of("node-1:20000"), _port_of(None), _port_of("node-1")
    (5000, 20000, None, None)
    """
    host, dummy, port = str(address or "").rpartition(":")
    return int(port) if host and port.isdigit() else None


def _value(argv: Sequence[str], flag: str) -> str:
    """Return what an argument was given last, as SGLang takes it, or nothing.

    >>> _value(["--a", "1", "--nccl-port", "5", "--nccl-port=6"], "--nccl-port"), _value([], "--a")
    ('6', '')
    """
    found = ""
    for at, word in enumerate(argv):
        name, sign, value = word.partition("=")
        if name == flag:
            found = value if sign else "".join(argv[at + 1 : at + 2])
    return found
