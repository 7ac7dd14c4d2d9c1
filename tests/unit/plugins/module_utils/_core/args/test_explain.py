"""explain: every path that changes a feature, in order, its whole guard, whether a command line takes it, which one decides."""

from __future__ import annotations

import json
import re

import grep_writes
import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.check import check
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.explain import explain
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.flags import read_flags
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.paths import find_paths
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.topics import TOPICS, topic_fields
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from known_hosts import RTX_PRO_6000 as FACTS

pytestmark = pytest.mark.wheel
STORY = ["--model-path", "m", "--trust-remote-code", "--pp-size", "8"]
VERSIONS = ("0.5.11", "0.5.12", "0.5.18", "0.5.23")


@pytest.fixture(scope="module")
def release(wheel):
    held = {}

    def get(version):
        if version not in held:
            tree = open_source(wheel(version))
            held[version] = (tree, read_flags(tree))
        return held[version]

    return get


@pytest.fixture(scope="module")
def run(release, fixtures):
    config = json.loads((fixtures / "args" / "kimi_k25.json").read_text())

    def call(topic, version, argv=None, **kwargs):
        tree, table = release(version)
        given = {"facts": FACTS, "model_config": config, "env": {}} | kwargs
        look = (lambda watch: check(argv, source_root=tree, watch=watch, **given)) if argv is not None else None
        return explain(topic, tree, table, look)

    return call


def all_fields(table):
    names = set()
    for topic in TOPICS:
        try:
            names |= set(topic_fields(topic, table))
        except InferopsError:
            continue
    return names


@pytest.mark.parametrize("version", VERSIONS)
def test_every_write_a_text_search_finds_is_listed_or_named_as_none(release, version):
    tree, table = release(version)
    names = all_fields(table)
    paths = find_paths(tree, names)
    listed = set()
    for path in paths:
        rel, _, line = path.site.source.rpartition(":")
        listed |= {(rel, int(line)), path.site.key}
    hits = grep_writes.hits(tree, names)
    missing = {f"{rel}:{line}": text for (rel, line), text in hits.items() if (rel, line) not in listed}
    unexplained = {
        place: text
        for place, text in missing.items()
        if grep_writes.reason(tree, place.rpartition(":")[0], int(place.rpartition(":")[2]), names) is None
    }
    assert unexplained == {}
    assert len(hits) - len(missing) > 60  # the search itself finds something
    assert len({path.site.source for path in paths if "cuda_graph" in path.site.field}) >= 50


@pytest.mark.parametrize("version", VERSIONS)
def test_every_listed_place_is_a_line_that_names_the_field(run, release, version):
    found = run("cuda_graph", version)
    for step in found.steps:
        site = step.path.site
        rel, _, line = site.source.rpartition(":")
        near = "".join(release(version)[0].read(rel).splitlines()[int(line) - 1 : int(line) + 3])
        assert site.field in ("*",) or any(part in near for part in (*site.field.split("."), "setattr", "with_phase", "_set("))
    assert all(step.path.when != "not called" for step in found.steps)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("more", [[], ["--disable-cuda-graph"], ["--attention-backend", "torch_native"]])
def test_the_paths_stand_in_the_order_the_release_takes_them(run, version, more):
    found = run("cuda_graph", version, [*STORY, *more])
    when = {}
    for index, visit in enumerate(found.report.visits):
        when.setdefault(visit.source, index)
    order = [when[step.path.site.statement] for step in found.steps if step.taken == "yes"]
    assert order
    assert order == sorted(order)


def by_result(found, name):
    step = found.decider(name)
    return step.path.site if step else None


@pytest.mark.parametrize("version", VERSIONS)
def test_r7_the_leftover_flag_is_the_only_path_that_turns_decode_graphs_off(run, version):
    nested = version not in ("0.5.11", "0.5.12")
    name = "cuda_graph_config.decode.backend" if nested else "disable_cuda_graph"
    off = [step for step in run("cuda_graph", version, STORY).steps if step.path.site.field == name and step.taken == "yes"]
    assert [step for step in off if "DISABLED" in step.path.site.value or step.path.site.value == "True"] == []
    if nested:
        site = by_result(run("cuda_graph", version, [*STORY, "--disable-cuda-graph"]), name)
        assert "disable_cuda_graph" in site.guards[-1]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_whole_chain_of_conditions_is_shown(run, version):
    found = run("cuda_graph", version, [*STORY[:3], "--attention-backend", "torch_native"])
    name = "cuda_graph_config.decode.backend" if version in ("0.5.18", "0.5.23") else "disable_cuda_graph"
    step = found.decider(name)
    assert "torch_native" in " ".join(step.path.site.guards)
    assert step.taken == "yes"
    assert "--attention-backend" in step.triggers
    assert step.path.calls[0] in ("__post_init__", "resolve_once")


@pytest.mark.wheel
def test_what_the_command_line_asks_for_is_part_of_the_result(run):
    """On 0.5.12 the leftover flag is a field of its own that no path writes: it must not be missing from the answer."""
    text = run("cuda_graph", "0.5.12", [*STORY, "--disable-cuda-graph"]).text()
    assert "disable_cuda_graph = on  [asked for]" in text
    assert "[asked for]" not in run("cuda_graph", "0.5.12", STORY).text()


def test_the_paths_taken_are_counted_up_before_they_are_listed(run):
    text = run("cuda_graph", "0.5.23", STORY).text()
    told = re.search(r"in this order; this command line takes ([\d,\s]+):", text)[1].replace(",", "").split()
    assert told == re.findall(r"^ *(\d+)[* ] (?:(?!^ *\d+[* ]).)*?\[taken\]", text, re.M | re.S)


def test_alternatives_among_the_conditions_stand_in_brackets(run):
    text = " ".join(run("cuda_graph", "0.5.12").text().split())
    assert "and (self.lora_paths or self.enable_lora)" in text
    assert "and self.lora_paths or self.enable_lora" not in text


def test_settings_handed_on_by_their_dict_are_no_field_of_their_own(run):
    """0.5.23 passes ``**sizing`` to a phase: which settings that are the source says elsewhere."""
    sites = [step.path.site for step in run("cuda_graph", "0.5.23").steps]
    assert [site.field for site in sites if "None" in site.field] == []
    assert ("cuda_graph_config.prefill.*", "the settings in sizing") in [(site.field, site.value) for site in sites]


def test_a_condition_that_most_paths_share_is_written_out_once(run):
    text = " ".join(run("cuda_graph", "0.5.12", STORY).text().split())
    guard = "self.model_path.lower() not in ['none', 'dummy']"
    assert f"A stands for: {guard}" in text
    assert text.count(guard) == 1
    assert "when A and self.device == 'npu'" in text


def test_an_earlier_return_is_a_guard(run):
    forced = [
        step.path.site for step in run("cuda_graph", "0.5.23").steps if step.path.site.function == "handle_multi_item_scoring"
    ]
    assert forced
    assert all("cfg.enable_mis" in site.guards for site in forced)  # after "if not cfg.enable_mis: return"


@pytest.mark.parametrize(("version", "place"), [("0.5.12", "server_args.py"), ("0.5.23", "arg_groups/")])
def test_overlap_is_decided_by_the_pipeline(run, version, place):
    found = run("overlap", version, STORY)
    step = found.decider("disable_overlap_schedule")
    assert place in step.path.site.source
    assert "pp_size" in " ".join(step.path.site.guards)
    assert "--pp-size" in step.triggers
    assert found.result()["disable_overlap_schedule"] is True


@pytest.mark.parametrize("version", VERSIONS)
def test_without_facts_a_path_is_undecided_and_names_what_would_decide(run, version):
    found = run("attention_backend", version, STORY, facts={}, model_config=None)
    open_steps = [step for step in found.steps if step.taken == "undecided"]
    assert open_steps
    assert any(need.startswith(("sm", "platform", "model")) for step in open_steps for need in step.needs)
    told = run("attention_backend", version, STORY)
    assert len([step for step in told.steps if step.taken == "undecided"]) < len(open_steps)


def test_late_writers_are_named_as_such(run):
    late = [step for step in run("cuda_graph", "0.5.12", STORY).steps if step.path.when == "run time"]
    assert any(step.path.site.source.startswith("srt/speculative/eagle_worker") for step in late)
    assert all(step.taken is None for step in late)
    assert any("model_runner.py" in s.path.site.source for s in run("cuda_graph", "0.5.23").steps if s.path.when == "run time")


@pytest.mark.parametrize("topic", [*TOPICS, "pp-async-batch-depth"])
def test_every_topic_reads_within_100_columns_and_is_json(run, topic):
    found = run(topic, "0.5.23", STORY)
    text = found.text()
    words = {word for line in text.splitlines() if len(line) > 100 for word in line.split() if len(word) > 60}
    assert [line for line in text.splitlines() if len(line) > 100 and not any(word in line for word in words)] == []
    data = json.loads(json.dumps(found.as_dict()))
    assert data["sites"] == [] or {"guards", "taken", "needs", "decides", "triggers", "when"} <= set(data["sites"][0])


def test_hyphens_and_underscores_and_case_are_one(release):
    table = release("0.5.23")[1]
    assert topic_fields("--CUDA-graph", table) == topic_fields("cuda_graph", table)
    assert topic_fields("page-size", table) == ("page_size",)


def test_an_unknown_topic_is_refused(release):
    with pytest.raises(InferopsError, match="called cuda-grpah") as caught:
        topic_fields("cuda-grpah", release("0.5.23")[1])
    assert "cuda_graph" in caught.value.do
