"""What torch beside the release was built for decides whether SGLang sees the host's cards."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.check import check
from known_hosts import RTX_PRO_6000

pytestmark = pytest.mark.wheel
ARGV = ["--model-path", "m", "--device", "cpu", "--attention-backend", "torch_native", "--sampling-backend", "pytorch"]


@pytest.mark.parametrize(("cuda", "chunk"), [("None", None), ("'13.0'", 8192)])
def test_the_memory_of_a_card_counts_only_where_sglang_sees_the_card(unpacked, tmp_path, fixtures, cuda, chunk):
    """Seen on the real engine: 8192 was said of a host with 96 GiB cards, the server on its processor said 4096."""
    root = tmp_path / "site-packages"
    shutil.copytree(unpacked("0.5.23"), root, copy_function=os.link)
    (root / "torch").mkdir()
    (root / "torch" / "version.py").write_text(f"cuda: Optional[str] = {cuda}\nhip: Optional[str] = None\n")
    model = json.loads((fixtures / "args" / "kimi_k25.json").read_text())
    report = check(ARGV, source_root=root, facts=RTX_PRO_6000, model_config=model, env={"SGLANG_USE_CPU_ENGINE": "1"})
    assert report.effective.get("chunked_prefill_size") == chunk
    assert ("chunked_prefill_size" in {entry["field"] for entry in report.undecided}) == (chunk is None)
