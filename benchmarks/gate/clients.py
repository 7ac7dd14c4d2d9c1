# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The clients that peers.py compares: how each is started for one setting, and where its own report has which figure.

Every client gets the same server, the same lengths, the same number of requests per stream and its own defaults for the rest.
Peers live in environments of their own, pinned as a whole in requirements/.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PEERS = Path(os.environ.get("INFEROPS_PEERS", Path.home() / ".cache" / "inferops" / "peers"))
INPUT_TOKENS = 64
VOCABULARY = 2000


@dataclass(frozen=True)
class Setting:
    """One load: each of ``streams`` asks ``requests`` times for ``tokens`` tokens; the server needs ttft_s, then itl_s each."""

    streams: int
    itl_s: float
    tokens: int
    requests: int
    ttft_s: float = 0.2

    @property
    def planned(self) -> int:
        return self.streams * self.requests


@dataclass(frozen=True)
class Said:
    """What a client reports: output tokens/s, and TTFT and ITL in ms; None where it has no such figure."""

    tokens_per_s: float
    ttft_p50_ms: float
    itl_p50_ms: float | None
    itl_p99_ms: float | None


@dataclass(frozen=True)
class Place:
    """Where one run happens: the server's address, the tokenizer's folder, a folder for what the client writes."""

    url: str
    tokenizer: Path
    folder: Path


@dataclass(frozen=True)
class Client:
    """``itl`` says in words what its ITL is."""

    name: str
    version: str
    itl: str
    command: Callable[[Setting, Place], list[str]]
    read: Callable[[Path], Said]
    environment: Mapping[str, str]


def _ours(setting: Setting, place: Place) -> list[str]:
    longest = setting.ttft_s + setting.itl_s * (setting.tokens - 1)
    plan = {
        "input_tokens": INPUT_TOKENS,
        "output_tokens": setting.tokens,
        "points": [{"concurrency": setting.streams}],
        "default_limits": "none",
        # The point ends by itself once its interval is narrow, as an observed one does: here after as long as the others take.
        "min_seconds_per_point": round(longest * (setting.requests - 0.5), 1),
        "correctness": {"multi_turn": False, "tool_calls": False},
    }
    file = place.folder / "plan.json"
    file.write_text(json.dumps(plan))
    tool = str(HERE.parents[1] / "tools" / "inferops")
    return [tool, "gate", "--base-url", place.url, "--plan", str(file), "--out", str(place.folder / "gate")]


def _read_ours(folder: Path) -> Said:
    point = json.loads((folder / "gate" / "result.json").read_text())["points"][0]
    return Said(point["output_tokens_per_s"], point["ttft_ms"]["p50"], point["itl_ms"]["p50"], point["itl_ms"]["p99"])


def _sglang(setting: Setting, place: Place) -> list[str]:
    return [
        str(PEERS / "sglang" / "bin" / "python"),
        str(HERE / "sglang_on_cpu.py"),
        "sglang.benchmark.serving",
        *("--backend", "sglang-oai", "--base-url", place.url, "--model", str(place.tokenizer), "--served-model-name", "known"),
        *("--tokenizer", str(place.tokenizer), "--dataset-name", "random-ids", "--random-range-ratio", "1.0"),
        *("--random-input-len", str(INPUT_TOKENS), "--random-output-len", str(setting.tokens), "--disable-tqdm"),
        *("--num-prompts", str(setting.planned), "--max-concurrency", str(setting.streams)),
        *("--output-file", str(place.folder / "sglang.jsonl")),
    ]


def _read_sglang(folder: Path) -> Said:
    said = json.loads((folder / "sglang.jsonl").read_text().splitlines()[-1])
    return Said(said["output_throughput"], said["median_ttft_ms"], said["median_itl_ms"], said["p99_itl_ms"])


def _aiperf(setting: Setting, place: Place) -> list[str]:
    return [
        str(PEERS / "aiperf" / "bin" / "aiperf"),
        *("profile", "--model", "known", "--tokenizer", str(place.tokenizer), "--url", place.url, "--ui", "none"),
        *("--endpoint-type", "completions", "--streaming", "--concurrency", str(setting.streams)),
        *("--request-count", str(setting.planned), "--isl", str(INPUT_TOKENS), "--isl-stddev", "0"),
        *("--osl", str(setting.tokens), "--osl-stddev", "0", "--extra-inputs", "ignore_eos:true"),
        *("--artifact-dir", str(place.folder / "aiperf")),
    ]


def _read_aiperf(folder: Path) -> Said:
    said = json.loads((folder / "aiperf" / "profile_export_aiperf.json").read_text())
    gaps = said["inter_chunk_latency"]
    return Said(said["output_token_throughput"]["avg"], said["time_to_first_token"]["p50"], gaps["p50"], gaps["p99"])


def _guidellm(setting: Setting, place: Place) -> list[str]:
    return [
        str(PEERS / "guidellm" / "bin" / "guidellm"),
        *("run", "--backend", f"kind=openai_http,target={place.url},model=known,request_format=/v1/completions"),
        *("--profile", f"kind=concurrent,streams={setting.streams}"),
        *("--constraint", f"kind=max_requests,count={setting.planned}"),
        *("--tokenizer", f"kind=huggingface_auto,model={place.tokenizer}"),
        *("--data", f"kind=synthetic_text,prompt_tokens={INPUT_TOKENS},output_tokens={setting.tokens}"),
        *("--output", f"kind=json,path={place.folder / 'guidellm.json'}", "--disable-console"),
    ]


def _read_guidellm(folder: Path) -> Said:
    metrics = json.loads((folder / "guidellm.json").read_text())["benchmarks"][0]["metrics"]
    rate, ttft, itl = (
        metrics[name]["successful"] for name in ("output_tokens_per_second", "time_to_first_token_ms", "inter_token_latency_ms")
    )
    return Said(rate["mean"], ttft["median"], itl["median"], itl["percentiles"]["p99"])


def _genai_bench(setting: Setting, place: Place) -> list[str]:
    return [
        str(PEERS / "genai-bench" / "bin" / "genai-bench"),
        *("benchmark", "--api-backend", "sglang", "--api-base", place.url, "--api-key", "none", "--api-model-name", "known"),
        *("--model-tokenizer", str(place.tokenizer), "--model", "known", "--task", "text-to-text"),
        *("--num-concurrency", str(setting.streams), "--traffic-scenario", f"D({INPUT_TOKENS},{setting.tokens})"),
        *("--max-time-per-run", "2", "--max-requests-per-run", str(setting.planned)),
        *("--experiment-base-dir", str(place.folder / "genai"), "--server-engine", "SGLang", "--server-version", "0"),
        *("--server-gpu-type", "H100", "--server-gpu-count", "1"),
    ]


def _read_genai_bench(folder: Path) -> Said:
    (file,) = (folder / "genai").glob("*/D*_num_concurrency_*.json")
    said: dict[str, Any] = json.loads(file.read_text())["aggregated_metrics"]
    stats = said["stats"]
    return Said(said["mean_output_throughput_tokens_per_s"], 1000 * stats["ttft"]["p50"], 1000 * stats["tpot"]["p50"], None)


OFFLINE = {"HF_HUB_OFFLINE": "1"}
OURS = Client("inferops gate", "this tree", "gaps, pooled", _ours, _read_ours, {"INFEROPS_PYTHON": sys.executable})
CLIENTS = (
    OURS,
    Client("sglang", "0.5.23", "gaps, pooled", _sglang, _read_sglang, OFFLINE),
    # With HF_HUB_OFFLINE aiperf refuses a local tokenizer.
    Client("aiperf", "0.13.0", "its inter_chunk_latency: gaps, pooled", _aiperf, _read_aiperf, {}),
    Client("guidellm", "0.8.1", "mean gap of each request", _guidellm, _read_guidellm, OFFLINE),
    Client("genai-bench", "0.0.5", "has no ITL: TPOT of each request", _genai_bench, _read_genai_bench, OFFLINE),
)


def write_tokenizer(folder: Path) -> None:
    """Write a tokenizer of words, w0 … w1999, as the server counts them; a word it does not know is w0."""
    special = ["<pad>", "<eos>"]
    words = [*special, *(f"w{index}" for index in range(VOCABULARY))]
    added = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": index, "content": word, **added} for index, word in enumerate(special)],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {word: index for index, word in enumerate(words)}, "unk_token": "w0"},
    }
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<eos>",
        "pad_token": "<pad>",
        "model_max_length": 100_000,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, "clean_up_tokenization_spaces": False}))
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}))


def set_up(name: str, python: str) -> None:
    """Make the environment of a peer, unless it is there; everything is pinned in requirements/."""
    wanted = (HERE / "requirements" / f"{name}.txt").read_text()
    stamp = PEERS / name / "requirements.txt"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    subprocess.run([python, "-m", "venv", "--clear", str(PEERS / name)], check=True)
    pip = [str(PEERS / name / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps", "--requirement"]
    subprocess.run([*pip, str(HERE / "requirements" / f"{name}.txt")], check=True)
    stamp.write_text(wanted)
