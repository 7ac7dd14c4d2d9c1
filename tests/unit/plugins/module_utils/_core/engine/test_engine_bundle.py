# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A bundle is what was made, or nothing of it is used."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.bundle import SUMS, seal, verify
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.install import install
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.installers import Sources
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from engines import by_pip, lock_of, make_wheel, wanted


@pytest.fixture
def bundle(tmp_path):
    folder = tmp_path / "bundle"
    folder.mkdir()
    wheel = make_wheel(folder / "wheels")
    (folder / "engine.lock").write_text(lock_of(wheel) + "\n")
    seal(folder, "9.9.9")
    return folder


def test_sealed_once_it_verifies_and_lists_its_parts(bundle):
    verify(bundle)
    assert not seal(bundle, "9.9.9")
    bill = json.loads((bundle / "sbom.cdx.json").read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    assert [part["purl"] for part in bill["components"]] == ["pkg:pypi/sglang@9.9.9"]
    assert bill["components"][0]["hashes"][0]["content"] in (bundle / "engine.lock").read_text()
    assert SUMS not in (bundle / SUMS).read_text()


VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
for bill in sys.stdin:
    print("wrong" if JsonStrictValidator(SchemaVersion.V1_5).validate_str(bill) else "valid")
"""


def test_the_bill_of_materials_is_valid_cyclonedx_with_a_part_of_each_kind(bundle, cyclonedx):
    """Read by the project's own library, with its strict schema: an unknown key or an invalid digest is an error there."""
    for name in ("interpreter/python.tar.gz", "collection/inferops-sglang-0.1.0.tar.gz"):
        (bundle / name).parent.mkdir()
        (bundle / name).write_bytes(b"x")
    assert seal(bundle, "9.9.9")
    bill = json.loads((bundle / "sbom.cdx.json").read_text())
    assert bill["metadata"]["component"]["version"] == "9.9.9"
    assert {(part["type"], part["name"], part.get("version")) for part in bill["components"]} == {
        ("library", "sglang", "9.9.9"),
        ("platform", "python.tar.gz", None),
        ("application", "inferops.sglang", "0.1.0"),
    }
    text = json.dumps(bill)
    bills = "\n".join([text, text.replace('"hashes"', '"digests"'), text.replace('"SHA-256"', '"SHA256"')])
    said = subprocess.run([cyclonedx, "-I", "-c", VALIDATE], input=bills, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["valid", "wrong", "wrong"]


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (lambda b: (b / "engine.lock").write_text("x"), "engine.lock is another file"),
        (lambda b: (b / "wheels" / "more.whl").write_text("x"), "wheels/more.whl is not in the list"),
        (lambda b: (b / "sbom.cdx.json").unlink(), "sbom.cdx.json is missing"),
        (lambda b: (b / SUMS).unlink(), "no list of checksums"),
    ],
)
def test_what_was_changed_is_named_and_nothing_is_installed(bundle, tmp_path, break_it, says):
    lock = (bundle / "engine.lock").read_text().strip()
    break_it(bundle)
    with pytest.raises(InferopsError, match=says):
        install(
            wanted(tmp_path, lock, bundle=str(bundle)),
            by_pip(tmp_path, sources=Sources(f"{bundle}/wheels"), pip_python=sys.executable),
        )
    assert not list((tmp_path / "engines").glob("9*"))


def test_a_release_is_installed_from_it_and_not_by_another_lock(bundle, tmp_path):
    lock = (bundle / "engine.lock").read_text().strip()
    how = by_pip(tmp_path, sources=Sources(f"{bundle}/wheels"))
    with pytest.raises(InferopsError, match="another lock"):
        install(wanted(tmp_path, "# other\n" + lock, bundle=str(bundle)), how)
    plan, made, _dummy = install(wanted(tmp_path, lock, bundle=str(bundle)), how)
    assert made
    assert plan.complete
