"""The ports that a release draws from its arguments, against the code of that release itself."""

from __future__ import annotations

import ast
import dataclasses
import logging
import random
import types
import uuid
import zipfile
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.engine_ports import engine_ports

RELEASES = ["0.4.6.post5", "0.4.10.post2", "0.5.5", "0.5.10", "0.5.12", "0.5.14", "0.5.18", "0.5.23"]


class Address:
    """As SGLang's NetworkAddress, as far as PortArgs asks it."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port

    def to_tcp(self) -> str:
        return f"tcp://{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Address:
        host, dummy, port = text.rpartition(":")
        return cls(host, int(port))


class Asked(types.SimpleNamespace):
    """Arguments, and everything else at its default, which is nothing."""

    def __getattr__(self, name: str) -> Any:
        return types.SimpleNamespace(get=lambda: None) if name.startswith("SGLANG_") else None


def its_own(wheel, version: str, port: int, address: str | None) -> set[int]:
    """Run PortArgs.init_new out of the wheel, with data parallel attention; return every port it names or waits for."""
    with zipfile.ZipFile(wheel(version)) as archive:
        source = archive.read("sglang/srt/server_args.py").decode()
    node = next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == "PortArgs")
    waited: set[int] = set()
    names = {
        "dataclasses": dataclasses,
        "random": random,
        "tempfile": types.SimpleNamespace(NamedTemporaryFile=lambda **_: types.SimpleNamespace(name="x")),
        "uuid": uuid,
        "logger": logging.getLogger(),
        "NetworkAddress": Address,
        "ZMQ_TCP_PORT_DELTA": 233,
        "envs": Asked(),
        "is_port_available": lambda port: True,
        "get_free_port": lambda: 1,
        "get_free_port_below_ephemeral": lambda: 1,
        "wait_port_available": lambda port, name: None if name == "nccl_port" else waited.add(port),
        "resolving_view": lambda args: args,
        "attn_dp_enabled_of": lambda args: True,
        "ep_joiner_of": lambda args: False,
        "ep_scale_joiner_of": lambda args: False,
        "num_dp_ranks_of": lambda args: 2,
    }
    exec(compile("from __future__ import annotations\n" + ast.get_source_segment(source, node), version, "exec"), names)
    asked = Asked(
        port=port,
        nnodes=2 if address else 1,
        dist_init_addr=address,
        enable_dp_attention=True,
        tokenizer_worker_num=1,
        decoupled_spec_role="null",
        dp_size=2,
    )
    made = dataclasses.dataclass(names["PortArgs"]).init_new(asked)
    texts = [str(value) for value in vars(made).values()]
    return waited | {int(text.rpartition(":")[2]) for text in texts if text.startswith("tcp://")}


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize(
    ("port", "address"),
    [(30000, None), (30000, "10.0.0.1:20000"), (65400, None), (30000, "10.0.0.1:65533"), (30000, "10.0.0.1:65530")],
)
def test_the_row_of_ports_is_the_one_of_the_release(wheel, version, port, address):
    effective = {"enable_dp_attention": True, "dist_init_addr": address}
    found = {each.port for each in engine_ports(version, [], effective, port) if "parallel ranks" not in each.purpose}
    theirs = {port for port in its_own(wheel, version, port, address) if port <= 65535}
    assert theirs <= found
    # Where ranks meet is bound by torch, which older releases do not wait for here.
    assert found - theirs <= {int(address.rpartition(":")[2]) if address else port + 233}


def test_what_other_ranks_and_roles_take():
    def ports(version="0.5.23", argv=(), **effective):
        return [each.port for each in engine_ports(version, list(argv), effective, 30000)]

    assert ports(nnodes=2, node_rank=1, dist_init_addr="node-0:20000") == []
    assert 20013 in ports(nnodes=2, node_rank=0, dist_init_addr="node-0:20000", attn_dp_size=2)
    assert 20013 not in ports(nnodes=2, node_rank=1, dist_init_addr="node-0:20000", attn_dp_size=2)
    assert ports(disaggregation_mode="prefill", disaggregation_bootstrap_port=8998) == [8998]
    assert ports(disaggregation_mode="decode", disaggregation_bootstrap_port=8998) == []
    assert ports(grpc_port=40000) == [40000]
    assert ports(argv=["--nccl-port=29500"]) == [29500]
