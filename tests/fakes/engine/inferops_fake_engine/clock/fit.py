"""Solve for the four fitted parameters; run as a module, print them and how well they meet the figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .closed_loop import Outcome, closed_loop
from .parameters import Parameters
from .pipeline import Pipeline
from .stages import build_stages


@dataclass(frozen=True)
class Figure:
    """One published figure and the parameter that carries it."""

    output_tokens_per_s: float
    concurrency: int
    graphs: bool
    async_depth: int
    parameter: str
    low: float
    high: float


# In solving order: each figure depends only on the parameters of those before it and its own.
FIGURES = (
    Figure(35.6, 1, True, 8, "bandwidth_share", 0.3, 1.5),
    Figure(24.7, 1, False, 0, "launch_ms_per_layer", 0.0, 1.0),
    Figure(95.6, 8, False, 0, "occupancy_ms", 0.0, 20.0),
    Figure(156.4, 16, True, 8, "hidden_share", 0.0, 1.0),
)
INPUT_TOKENS, OUTPUT_TOKENS, NUM_LAYERS, PP_SIZE = 512, 256, 61, 8


def play(
    parameters: Parameters,
    *,
    concurrency: int,
    graphs: bool,
    async_depth: int,
    output_tokens: int = OUTPUT_TOKENS,
    rounds: int = 4,
) -> Outcome:
    stages = build_stages(num_layers=NUM_LAYERS, pp_size=PP_SIZE, graphs=graphs, parameters=parameters)
    pipeline = Pipeline(stages, async_depth=async_depth, parameters=parameters)
    return closed_loop(pipeline, concurrency=concurrency, input_tokens=INPUT_TOKENS, output_tokens=output_tokens, rounds=rounds)


def _bisect(value: Callable[[float], float], target: float, low: float, high: float) -> float:
    rising = value(high) > value(low)
    for dummy in range(24):
        middle = (low + high) / 2
        if (value(middle) < target) == rising:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def fit(start: Parameters | None = None) -> Parameters:
    p = start or Parameters()
    for figure in FIGURES:

        def measured(x: float, figure: Figure = figure, p: Parameters = p) -> float:
            tried = replace(p, **{figure.parameter: x})
            return play(
                tried, concurrency=figure.concurrency, graphs=figure.graphs, async_depth=figure.async_depth
            ).output_tokens_per_s

        p = replace(p, **{figure.parameter: round(_bisect(measured, figure.output_tokens_per_s, figure.low, figure.high), 5)})
    return p


def main() -> None:
    p = fit()
    for figure in FIGURES:
        got = play(p, concurrency=figure.concurrency, graphs=figure.graphs, async_depth=figure.async_depth)
        short = play(p, concurrency=figure.concurrency, graphs=figure.graphs, async_depth=figure.async_depth, output_tokens=128)
        print(
            f"{figure.parameter:22} {getattr(p, figure.parameter):9.5f}   wanted {figure.output_tokens_per_s:6.1f}   "
            f"512/256 {got.output_tokens_per_s:7.2f}   512/128 {short.output_tokens_per_s:7.2f}"
        )
    for graphs in (False, True):
        for depth in (0, 8):
            line = [play(p, concurrency=c, graphs=graphs, async_depth=depth) for c in (1, 2, 4, 8, 12, 16, 32)]
            print(f"graphs {graphs!s:5} depth {depth}: " + "  ".join(f"{o.output_tokens_per_s:6.1f}" for o in line))
            print("   streaming share       " + "  ".join(f"{sum(o.memory_ratio) / len(o.memory_ratio):6.3f}" for o in line))


if __name__ == "__main__":
    main()
