# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Lookup of a profile by name along a search path that starts in the user's own site; a dict is as good as a name."""

from __future__ import annotations

DOCUMENTATION = r"""
name: profile
author: [Inferops (@inferops)]
version_added: 0.1.0
short_description: Find a deployment profile by name and validate it
description:
  - A profile describes model, hardware and topology as data, with arguments, expectations and the gate plan that go with them.
  - A name is searched as C(<name>.yml) in the folders C(profiles/) beside the inventory, C(profiles/) beside the playbook,
    and then among the profiles of the collection. The first one found wins as a whole.
  - A mapping is validated and given back with every section present.
options:
  _terms:
    description: Names, or mappings, of profiles.
    required: true
    type: list
    elements: raw
  search_path:
    description: Folders searched before all others.
    type: list
    elements: path
    default: []
"""

EXAMPLES = r"""
- name: Show what the profile would launch
  ansible.builtin.debug:
    msg: "{{ lookup('inferops.sglang.profile', 'k2_6_pp8_rtx_pro_6000').args }}"
"""

RETURN = r"""
_raw:
  description:
    - One mapping for each term with the keys RV(ignore:name), RV(ignore:title), RV(ignore:model), RV(ignore:hardware),
      RV(ignore:topology), RV(ignore:args), RV(ignore:env), RV(ignore:expect), RV(ignore:gate) and RV(ignore:sources).
  type: list
  elements: dict
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.profile import nearest, validate_profile
from ansible_collections.inferops.sglang.plugins.plugin_utils.refusal import refusal

SHIPPED = Path(__file__).resolve().parents[2] / "roles" / "sglang_service" / "files" / "profiles"
SUFFIXES = (".yml", ".yaml")


def search_folders(own: list[str], variables: Mapping[str, object]) -> list[Path]:
    """Return the folders to search, nearest to the user first."""
    folders = [Path(folder) for folder in own]
    # Without an inventory file ansible-core gives the text "None": only an absolute folder is one.
    bases = [Path(str(variables.get(name) or "")) for name in ("inventory_dir", "playbook_dir")]
    folders += [base / "profiles" for base in bases if base.is_absolute()]
    return [*folders, SHIPPED]


def find(name: str, folders: list[Path]) -> Path:
    """Return the file of a profile, or raise InferopsError that lists the known ones."""
    if "/" in name or name.startswith("."):
        raise InferopsError(
            f"{name!r} is not the name of a profile", where="sglang_service_profile", do="give a name without folder or suffix"
        )
    for folder in folders:
        for suffix in SUFFIXES:
            if (folder / (name + suffix)).is_file():
                return folder / (name + suffix)
    known = sorted({path.stem for folder in folders if folder.is_dir() for path in folder.iterdir() if path.suffix in SUFFIXES})
    raise InferopsError(
        f"unknown profile {name!r}{nearest(name, known)}",
        where="sglang_service_profile",
        why=f"known are {', '.join(known)}",
        do=f"take one of these, write {folders[0] / (name + '.yml')}, or give a mapping",
    )


def resolve(term: object, folders: list[Path], load: Callable[[str], object]) -> dict[str, object]:
    """Return the validated profile for a name or a mapping; ``load`` reads a YAML file."""
    if isinstance(term, Mapping):
        return validate_profile(term, "sglang_service_profile")
    path = find(str(term), folders)
    profile = validate_profile(load(str(path)), str(path))
    profile["name"] = profile["name"] or path.stem
    return profile


class LookupModule(LookupBase):
    """Resolve each term to a validated profile."""

    def run(self, terms, variables=None, **kwargs):
        self.set_options(var_options=variables, direct=kwargs)
        folders = search_folders(self.get_option("search_path"), variables or {})
        try:
            return [resolve(term, folders, self._loader.load_from_file) for term in terms]
        except InferopsError as exc:
            raise refusal(exc, AnsibleError) from None
