"""explain: every path that changes a feature."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.explain import explain, topic_fields
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.flags import read_flags
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError

pytestmark = pytest.mark.wheel


@pytest.mark.parametrize(("version", "fewest"), [("0.5.12", 5), ("0.5.23", 15)])
def test_every_path_is_a_line_that_sets_the_field(wheel, version, fewest):
    tree = open_source(wheel(version))
    found = explain("cuda-graph", tree, read_flags(tree), None)
    assert len(found.sites) >= fewest
    for site in found.sites:
        rel, _, line = site.source.rpartition(":")
        near = "".join(tree.read(rel).splitlines()[int(line) - 1 : int(line) + 6])
        assert site.field.partition(".")[0] in near
    guards = {guard for site in found.sites for guard in site.guards}
    assert any("torch_native" in guard for guard in guards)


def test_an_earlier_return_is_a_guard(wheel):
    tree = open_source(wheel("0.5.23"))
    sites = explain("cuda_graph_config", tree, read_flags(tree), None).sites
    forced = [site for site in sites if site.function == "handle_multi_item_scoring"]
    assert forced
    assert all("enable_mis" in " ".join(site.guards) for site in forced)


def test_an_unknown_topic_is_refused(wheel):
    table = read_flags(open_source(wheel("0.5.23")))
    with pytest.raises(InferopsError, match="called cuda-grpah"):
        topic_fields("cuda-grpah", table)
