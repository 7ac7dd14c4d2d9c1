"""What lets SGLang import without a GPU is there in every process of its environment, whatever its command line says."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

FAKES = Path(__file__).resolve().parents[2] / "fakes"
# As much of torch and torchvision as the stand-ins touch: torchvision of another build names operators that are not there.
TORCH = "class ops: pass\n"
LIBRARY = "def register_fake(op, *args, **kwargs):\n    raise RuntimeError(f'operator {op} does not exist')\n"
VISION = "import torch.library\n\n@torch.library.register_fake('torchvision::nms')\ndef nms(): pass\n"


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    for name, text in (("torch/__init__", TORCH), ("torch/library", LIBRARY), ("torchvision/__init__", VISION)):
        file = folder / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    env = {**os.environ, "PYTHONPATH": f"{FAKES / 'record' / 'overlay'}{os.pathsep}{folder}", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)


def test_a_process_whose_words_do_not_name_the_engine_imports_it(tmp_path):
    """The check asks the release from `python -c …`: there the stand-ins were asleep, and the release gave no answer."""
    done = run(tmp_path, "import torchvision")
    assert done.returncode == 0, done.stderr


def test_an_operator_of_anybody_else_is_still_missed(tmp_path):
    done = run(tmp_path, "import torchvision, torch.library; torch.library.register_fake('mine::op')")
    assert "operator mine::op does not exist" in done.stderr


def test_a_kernel_that_is_called_after_all_says_so(tmp_path):
    done = run(tmp_path, "import sgl_kernel; sgl_kernel.rmsnorm()")
    assert "sgl_kernel.rmsnorm is a stand-in" in done.stderr


def test_two_builds_of_the_wheel_are_the_same(tmp_path):
    built = []
    for name in ("a", "b"):
        words = [sys.executable, str(FAKES / "build"), "cpu-wheel", str(tmp_path / name)]
        built.append(Path(subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()))
    assert built[0].read_bytes() == built[1].read_bytes()
    with zipfile.ZipFile(built[0]) as wheel:
        assert {"inferops_cpu_stand_ins.py", "inferops_cpu_stand_ins.pth"} <= set(wheel.namelist())
