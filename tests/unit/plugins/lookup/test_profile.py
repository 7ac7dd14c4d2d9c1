# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Profiles are found from the user's site outwards, and every figure in a shipped one has an origin."""

from __future__ import annotations

import numbers

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible_collections.inferops.sglang.plugins.lookup import profile as module
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan import GatePlan

SHIPPED = sorted(module.SHIPPED.glob("*.yml"))
FIGURES = ("model", "hardware", "topology", "args", "expect", "gate")


def look(term, variables=None):
    return module.resolve(term, module.search_folders([], variables or {}), DataLoader().load_from_file)


def write(folder, name, served):
    (folder / "profiles").mkdir(parents=True, exist_ok=True)
    (folder / "profiles" / f"{name}.yml").write_text(yaml.safe_dump({"model": {"served_name": served}}))


def test_the_site_wins_over_the_playbook_and_that_over_the_collection(tmp_path):
    variables = {"inventory_dir": str(tmp_path / "site"), "playbook_dir": str(tmp_path / "plays")}
    assert look("tiny_cpu", variables)["model"]["served_name"] == "tiny"
    write(tmp_path / "plays", "tiny_cpu", "plays")
    assert look("tiny_cpu", variables)["model"]["served_name"] == "plays"
    write(tmp_path / "site", "tiny_cpu", "site")
    assert look("tiny_cpu", variables)["model"]["served_name"] == "site"


def test_a_mapping_is_as_good_as_a_name():
    assert look(look("k2_6_pp8_rtx_pro_6000")) == look("k2_6_pp8_rtx_pro_6000")


def test_an_unknown_name_lists_the_known_and_the_nearest(tmp_path):
    write(tmp_path, "mine", "m")
    with pytest.raises(InferopsError) as caught:
        look("k2_6_pp8_rtx_pro6000", {"inventory_dir": str(tmp_path)})
    assert "did you mean 'k2_6_pp8_rtx_pro_6000'" in str(caught.value)
    assert "mine" in str(caught.value)
    assert "tiny_cpu" in str(caught.value)


@pytest.mark.parametrize("name", ["../tiny_cpu", ".hidden", "/etc/passwd"])
def test_a_name_never_leaves_the_folders(name):
    with pytest.raises(InferopsError, match="is not the name of a profile"):
        look(name)


def test_a_broken_file_is_named(tmp_path):
    write(tmp_path, "mine", "m")
    (tmp_path / "profiles" / "mine.yml").write_text("modell: {}\n")
    with pytest.raises(InferopsError, match=r"unknown key 'modell'(?s:.*)mine.yml"):
        look("mine", {"inventory_dir": str(tmp_path)})


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_profile_is_valid_and_named_after_its_file(path):
    found = look(path.stem)
    assert found["name"] == path.stem
    GatePlan.from_dict({"model": found["model"]["served_name"], **found["gate"]["plan"]})


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_figure_of_a_shipped_profile_has_an_origin(path):
    found = look(path.stem)
    missing = [leaf for section in FIGURES for leaf in figures(found[section], section) if not covered(leaf, found["sources"])]
    assert missing == []


def figures(value, name):
    if isinstance(value, dict):
        for key, part in value.items():
            yield from figures(part, f"{name}.{key}")
    elif isinstance(value, list):
        for part in value:
            yield from figures(part, name)
    elif isinstance(value, numbers.Real) and not isinstance(value, bool):
        yield name


def covered(leaf, sources):
    return any(leaf == source or leaf.startswith(source + ".") for source in sources)
