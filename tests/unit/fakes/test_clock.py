"""Laws of the clock, the four figures it is fitted to, and points it is not."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inferops_fake_engine.clock import FITTED, Continuous, Faults, Pipeline, PrefillDone, TokenDone, build_stages
from inferops_fake_engine.clock.closed_loop import closed_loop
from inferops_fake_engine.clock.fit import FIGURES, play
from inferops_fake_engine.clock.parameters import Parameters

FAULTS = (Faults(), Faults(kv_tokens=700), Faults(slow_hops={0: 30.0}), Faults(compile_after=(1, 3), compile_ms=100))


def rate(
    *, concurrency: int, graphs: bool = True, depth: int = 0, output: int = 32, parameters: Parameters = FITTED, **pipeline
) -> float:
    stages = build_stages(
        num_layers=61,
        pp_size=8,
        graphs=graphs,
        parameters=parameters,
        slowdown=pipeline.pop("slowdown", None),
        graph_max_batch=256,
    )
    built = Pipeline(stages, async_depth=depth, parameters=parameters, **pipeline)
    return closed_loop(built, concurrency=concurrency, input_tokens=64, output_tokens=output, rounds=4).output_tokens_per_s


@pytest.mark.parametrize("output_tokens", [256, 128])
@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f"{f.output_tokens_per_s}@{f.concurrency}")
def test_the_published_figures_come_out(figure, output_tokens):
    got = play(
        FITTED, concurrency=figure.concurrency, graphs=figure.graphs, async_depth=figure.async_depth, output_tokens=output_tokens
    )
    tolerance = 0.0005 if output_tokens == 256 else 0.02
    assert got.output_tokens_per_s == pytest.approx(figure.output_tokens_per_s, rel=tolerance)


def test_every_parameter_names_its_source():
    kinds = {source.split(":")[0] for source in Parameters.sources().values()}
    assert kinds == {"config", "vendor", "fitted", "assumed"}
    assert sum(source.startswith("fitted") for source in Parameters.sources().values()) == len(FIGURES)


@pytest.mark.parametrize("depth", [1, 4, 8, 16])
def test_depth_changes_nothing_for_one_stream(depth):
    assert rate(concurrency=1, depth=depth) == rate(concurrency=1, depth=0)


@pytest.mark.parametrize("depth", [0, 8])
@pytest.mark.parametrize("graphs", [True, False])
def test_more_streams_never_give_less(graphs, depth):
    rates = [rate(concurrency=c, graphs=graphs, depth=depth) for c in (1, 2, 4, 8, 16)]
    assert all(later >= earlier * 0.995 for earlier, later in pairwise(rates))


@pytest.mark.parametrize("concurrency", [1, 8, 16])
def test_every_cost_slows(concurrency):
    base = rate(concurrency=concurrency, graphs=False, depth=8)
    for name in ("launch_ms_per_layer", "hop_ms", "attention_gb", "experts_gb"):
        dearer = replace(FITTED, **{name: getattr(FITTED, name) * 2})
        slower = rate(concurrency=concurrency, graphs=False, depth=8, parameters=dearer)
        hidden = name == "hop_ms" and concurrency == 16  # more micro-batches than stages: the next one is already there
        assert slower <= base if hidden else slower < base, name


def test_the_occupancy_is_off_the_path_of_one_stream_and_on_that_of_many():
    dearer = replace(FITTED, occupancy_ms=FITTED.occupancy_ms * 1.5)
    assert rate(concurrency=1, parameters=dearer) == rate(concurrency=1)
    assert rate(concurrency=8, parameters=dearer) < rate(concurrency=8)


def test_points_that_were_not_fitted():
    """The clock must not say more than a perfect pipeline would, nor less than serial work."""
    one = rate(concurrency=1)
    assert one * 8 > rate(concurrency=8, depth=8) > rate(concurrency=1)
    slow16, fixed16 = rate(concurrency=16, graphs=False), rate(concurrency=16, depth=8)
    assert slow16 < 148.5 < fixed16
    assert rate(concurrency=8, graphs=False) < rate(concurrency=8, depth=8) < fixed16
    assert one < 1600 / 33.0


def test_a_shared_slot_costs_and_a_slow_stage_costs():
    even = rate(concurrency=16, depth=8)
    assert rate(concurrency=16, depth=8, cohorted=True) < 0.75 * even
    assert rate(concurrency=16, depth=8, slowdown={3: 2.0}) < 0.85 * even


def test_without_graphs_no_pass_is_counted_as_a_graph():
    stages = build_stages(num_layers=61, pp_size=8, graphs=False, graph_max_batch=256, parameters=FITTED)
    pipeline = Pipeline(stages, async_depth=0, parameters=FITTED)
    closed_loop(pipeline, concurrency=16, input_tokens=8, output_tokens=8, rounds=3)
    assert pipeline.graph_passes == 0 < pipeline.eager_passes


def test_a_batch_above_the_captured_size_runs_eagerly():
    """R104: flags look right, graphs are not used."""
    stages = build_stages(num_layers=61, pp_size=8, graphs=True, graph_max_batch=4, parameters=FITTED)
    pipeline = Pipeline(stages, async_depth=0, parameters=FITTED, cohorted=True)
    closed_loop(pipeline, concurrency=16, input_tokens=8, output_tokens=8, rounds=3)
    assert pipeline.eager_passes > 0


def played(faults=FAULTS[0], model=Pipeline, **changes):
    stages = build_stages(num_layers=61, pp_size=8, graphs=True, parameters=FITTED)
    pipeline = model(stages, async_depth=0, parameters=FITTED, faults=faults, **changes)
    outcome = closed_loop(pipeline, concurrency=16, input_tokens=64, output_tokens=32, rounds=4)
    return pipeline, outcome.output_tokens_per_s


@pytest.mark.parametrize("model", [Pipeline, Continuous])
def test_each_fault_costs_and_is_counted(model):
    whole, speed = played(model=model)
    assert whole.retracted == whole.compile_ms == 0
    small, slower = played(Faults(kv_tokens=600), model=model)
    assert slower < 0.8 * speed
    assert small.queued_ms > whole.queued_ms
    compiled, slower = played(Faults(compile_after=(20, 30), compile_ms=2000), model=model)
    assert (compiled.compile_ms, slower < speed) == (4000, True)
    assert played(Faults(slow_hops={2: 40.0}), model=model)[1] < speed
    assert played(model=model, cohorted=True)[1] < 0.75 * speed


def test_an_overfull_pool_retracts_the_youngest_and_every_answer_still_ends():
    crowded, _ = played(Faults(kv_tokens=900))
    assert crowded.retracted > 0


@st.composite
def _workload(draw):
    count = draw(st.integers(1, 12))
    return [(draw(st.floats(0, 500)), draw(st.integers(1, 600)), draw(st.integers(1, 9))) for _ in range(count)]


@settings(max_examples=120, deadline=None)
@given(
    _workload(),
    st.integers(0, 8),
    st.booleans(),
    st.integers(1, 4),
    st.sampled_from([Pipeline, Continuous]),
    st.sampled_from(FAULTS),
)
def test_every_token_comes_once_in_order_and_nothing_stays_behind(work, depth, cohorted, pp_size, model, faults):
    stages = build_stages(num_layers=8, pp_size=pp_size, graphs=True, parameters=FITTED)
    pipeline = model(
        stages, async_depth=depth, parameters=FITTED, cohorted=cohorted, max_running=6, chunked_prefill=512, faults=faults
    )
    seen: dict[int, list[tuple[float, bool]]] = {key: [] for key in range(len(work))}
    prefilled: dict[int, float] = {}
    last_at = 0.0

    def take(events):
        nonlocal last_at
        for event in events:
            assert event.at_ms >= last_at
            last_at = event.at_ms
            if isinstance(event, PrefillDone):
                prefilled.setdefault(event.request, event.at_ms)  # a retracted request is read twice
            elif isinstance(event, TokenDone):
                seen[event.request].append((event.at_ms, event.last))

    begun = {}
    for key, (at, prompt, output) in sorted(enumerate(work), key=lambda item: item[1][0]):
        take(pipeline.advance(at))
        begun[key] = at
        pipeline.submit(at, key, prompt_tokens=prompt, output_tokens=output)
    while (following := pipeline.next_ms()) is not None:
        take(pipeline.advance(following))
    assert pipeline.running == pipeline.queued == pipeline.in_flight == 0
    for key, (_, _, output) in enumerate(work):
        assert [last for _, last in seen[key]] == [False] * (output - 1) + [True]
        assert begun[key] < prefilled[key] == seen[key][0][0]


@settings(max_examples=30, deadline=None)
@given(_workload(), st.integers(0, 11))
def test_a_cancelled_request_leaves_no_trace(work, victim):
    pipeline = Pipeline(build_stages(num_layers=8, pp_size=2, graphs=True, parameters=FITTED), async_depth=1, parameters=FITTED)
    for key, (_, prompt, output) in enumerate(work):
        pipeline.submit(pipeline.now_ms, key, prompt_tokens=prompt, output_tokens=output)
    victim %= len(work)
    list(pipeline.advance(pipeline.now_ms + 5))
    pipeline.cancel(victim)
    finished = set()
    while (following := pipeline.next_ms()) is not None:
        finished |= {e.request for e in pipeline.advance(following) if isinstance(e, TokenDone) and e.last}
    assert victim not in finished
    assert pipeline.running == 0
