"""SGA212: what the running server may set again, complete against a text search, exact against the syntax trees."""

from __future__ import annotations

import grep_writes
import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.check import check
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.flags import read_flags
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.late import ANY, late_writers
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.sites import Site, functions_of
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import SourceTree, open_source
from known_hosts import RTX_PRO_6000 as FACTS

VERSIONS = ("0.4.6", "0.5.5", "0.5.10", "0.5.15")


@pytest.fixture(scope="module")
def release(wheel):
    trees = {}

    def get(version):
        if version not in trees:
            trees[version] = open_source(wheel(version))
        return trees[version]

    return get


def listed(tree, names):
    return {(name, place) for name, places in late_writers(tree).items() if name in names or name == ANY for place in places}


@pytest.mark.wheel
@pytest.mark.parametrize("version", VERSIONS)
def test_every_write_a_text_search_finds_outside_the_argument_code_is_listed(release, version):
    tree = release(version)
    names = set(read_flags(tree).fields)
    places = {place for _name, place in listed(tree, names)}
    hits = {
        f"{rel}:{line}": text
        for (rel, line), text in grep_writes.hits(tree, names).items()
        if not rel.startswith(grep_writes.ARGUMENT_CODE) and grep_writes.reason(tree, rel, line, names) is None
    }
    assert {place: text for place, text in hits.items() if place not in places} == {}
    assert len(hits) >= 15


# What the syntax trees have beside it is no write on the running server's record.
ELSEWHERE = {
    "srt/hardware_backend/npu/utils.py": "called by the argument code, so part of the resolution",
    "srt/ray/": "a changed copy of the record",
    "srt/models/transformers.py": "setattr on modules of the model",
}


@pytest.mark.wheel
@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_the_record_that_is_written_and_not_another_object_with_such_an_attribute(release, version):
    tree = release(version)
    names = set(read_flags(tree).fields)
    outside = functions_of(tree, names)[1]
    by_syntax = {(one.field.partition(".")[0], one.source) for part in outside for one in part.steps if isinstance(one, Site)}
    mine = listed(tree, names)
    assert mine - by_syntax == set()
    assert {place for _name, place in by_syntax - mine if not place.startswith(tuple(ELSEWHERE))} == set()


class Files:
    def __init__(self, files):
        self.files = files

    def read(self, rel):
        return self.files.get(rel)

    def read_bytes(self, rel):
        return self.files[rel].encode("utf-8")

    def glob(self, prefix):
        return [name for name in self.files if name.startswith(prefix)]

    def metadata(self):
        return None


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("self.server_args.page_size = 64", {"page_size": 2}),
        ("server_args.page_size, server_args.tp_size = 1, 2", {"page_size": 2, "tp_size": 2}),
        ("(\n    self.other,\n    get_global_server_args().page_size,\n) = old", {"page_size": 4}),
        ("sa = self.server_args\nsa.page_size = 1", {"page_size": 3}),
        ("graphs = server_args.cuda_graph_config\ngraphs.decode.backend = 1", {"cuda_graph_config": 3}),
        ("server_args.page_size += 1", {"page_size": 2}),
        ('setattr(server_args, "page_size", 1)', {"page_size": 2}),
        ("setattr(self.server_args, name, 1)", {"*": 2}),
        ("self.page_size = 64", {}),
        ("pool.page_size = server_args.page_size", {}),
        ("if server_args.page_size == 64: pass", {}),
        ("call(page_size=server_args.page_size)", {}),
        ("call(\n    server_args.page_size, x\n) == 1", {}),
        ('print(f"{server_args.page_size=}")', {}),
        ("# server_args.page_size = 64", {}),
    ],
)
def test_what_counts_as_a_write(code, found):
    tree = SourceTree(Files({"srt/server_args.py": "", "srt/managers/scheduler.py": f"def run():\n{code}"}), "files")
    assert late_writers(tree) == {name: (f"srt/managers/scheduler.py:{line}",) for name, line in found.items()}


@pytest.mark.wheel
@pytest.mark.parametrize("version", ["0.4.6", "0.5.10", "0.5.15"])
def test_the_check_names_them_in_one_finding_key_fields_with_their_places(release, version):
    report = check(["--model-path", "m", "--tp-size", "8"], source_root=release(version), facts=FACTS, env={})
    (one,) = [finding for finding in report.findings if finding.code == "SGA212"]
    assert (one.level, one.blocks) == ("info", False)
    assert "disable_cuda_graph" in one.message
    assert f"disable_cuda_graph by {late_writers(release(version))['disable_cuda_graph'][0]}" in one.why
    assert "explain" in one.do


@pytest.mark.wheel
@pytest.mark.parametrize("version", ["0.5.16", "0.5.23"])
def test_a_record_that_watches_over_itself_is_not_said_to_be_written(release, version):
    report = check(["--model-path", "m", "--tp-size", "8"], source_root=release(version), facts=FACTS, env={})
    assert [finding for finding in report.findings if finding.code == "SGA212"] == []


@pytest.mark.wheel
def test_a_refused_command_line_runs_no_server(release):
    report = check(["--model-path", "m", "--tp-size", "8", "--nnodes", "3"], source_root=release("0.5.10"), facts=FACTS, env={})
    assert report.outcome == "fatal"
    assert [finding for finding in report.findings if finding.code == "SGA212"] == []
