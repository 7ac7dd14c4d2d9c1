# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""One rule of the interpreter each, on a source of a few lines instead of a release."""

from __future__ import annotations

import pytest

OVERRIDES = """
    MODEL_FNS = {}

    def register_model_override(name):
        def decorator(fn):
            MODEL_FNS.setdefault(name, []).append(fn)
            return fn
        return decorator

    def materialize_declarations(server_args):
        for source, declared in server_args._resolved_overrides:
            for field, value in declared.items():
                setattr(server_args, field, value)
        server_args._declarations_materialized = True
"""


def test_a_list_put_in_place_of_the_declarations_declares_what_it_holds(run):
    """0.5.15 ... 0.5.18 assign the overrides of the model as a list."""
    result = run(
        """
        from sglang.srt.arg_groups.overrides import materialize_declarations
        self._resolved_overrides = [("gone", {"pp_size": 5})]
        self._resolved_overrides = [("model", {"page_size": 64})]
        materialize_declarations(self)
        if self.page_size is None:
            raise ValueError("declared, yet not to be seen on the record")
        """,
        srt__arg_groups__overrides=OVERRIDES,
    )
    assert (result.outcome, result.message) == ("ok", None)
    assert result.effective["page_size"] == 64
    assert result.effective["pp_size"] == 1
    assert result.changed["page_size"]["source"].startswith("srt/server_args.py:")


def test_modules_found_by_listing_a_package_are_read(run):
    """The registry of diffusion algorithms: 0.5.12 ... 0.5.23."""
    body = """
        found = {}
        package = importlib.import_module("sglang.srt.parts")
        for finder, name, ispkg in pkgutil.iter_modules(package.__path__, "sglang.srt.parts."):
            module = importlib.import_module(name)
            if hasattr(module, "Part"):
                found[module.Part.__name__] = module.Part
        if "Other" in found or "First" not in found:
            raise ValueError(f"found {sorted(found)}")
        self.page_size = found["First"].size
    """
    result = run(
        body,
        srt__parts__one="class First:\n    size = 7\n\nPart = First\n",
        srt__parts__two="class Other:\n    size = 8\n",
    )
    assert (result.outcome, result.message) == ("ok", None)
    assert result.effective["page_size"] == 7


@pytest.mark.parametrize(
    ("test", "holds"),
    [
        ("{1} <= {1, 2}", True),
        ("{1, 3} <= {1, 2}", False),
        ("{1, 2} >= {2}", True),
        ("{1, 2} < {1, 2}", False),
        ("{1} < {1, 2}", True),
        ("{1, 2} > {1, 2}", False),
    ],
)
def test_sets_are_ordered_by_inclusion(run, test, holds):
    result = run(f"assert {test}\nself.page_size = 3")
    assert result.outcome == ("ok" if holds else "fatal")


IMPORTS = """
    if self.pp_size > 1:
        try:
            import granian
        except ImportError:
            raise ValueError("granian is missing")
"""


@pytest.mark.parametrize(
    ("packages", "outcome"), [(None, "unknown"), ({"granian": "2.0"}, "ok"), ({"flashinfer-python": "0.7"}, "unknown")]
)
def test_an_import_whose_failure_is_provided_for_hangs_on_the_packages(run, packages, outcome):
    facts = {} if packages is None else {"packages": packages}
    result = run(IMPORTS, "--pp-size", "2", facts=facts)
    assert result.outcome == outcome
    assert outcome == "ok" or result.doubts[0]["needs"] == ["packages.granian"]


@pytest.mark.parametrize(
    ("metadata", "beside", "outcome"),
    [
        ('Requires-Dist: granian>=2.6.0; extra == "http2"\n', False, "fatal"),
        ('Requires-Dist: granian>=2.6.0; extra == "http2"\n', True, "ok"),
        ('Requires-Dist: granian>=2.6.0; extra == "http2"\nRequires-Dist: granian\n', False, "unknown"),
        ("", False, "unknown"),
    ],
)
def test_a_package_of_an_extra_is_missing_unless_it_lies_beside_the_release(run, tmp_path, metadata, beside, outcome):
    """``--enable-http2``: 0.5.12 ... 0.5.23 refuse it where granian cannot be imported."""
    for name, text in {"sglang-0.5.99.dist-info/METADATA": metadata, **({"granian/__init__.py": ""} if beside else {})}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    assert run(IMPORTS, "--pp-size", "2").outcome == outcome


def test_a_refusal_that_hangs_on_a_file_of_the_host_is_not_passed_over(run):
    result = run(
        """
        if not os.path.isdir("/sys/class/infiniband"):
            raise RuntimeError("no InfiniBand")
        """
    )
    assert (result.outcome, result.message) == ("unknown", "no InfiniBand")
    assert result.doubts[0]["needs"] == ["file /sys/class/infiniband"]


def test_of_several_refusals_the_one_met_last_is_told(run):
    result = run(
        """
        if get_device_sm() > 90:
            raise ValueError("on these cards")
        raise ValueError("on every card")
        """
    )
    assert (result.outcome, result.message) == ("fatal", "on every card")


NESTED = """
    from sglang.srt.phases import Phases, Phase
    phases = Phases(decode=Phase(size=4, name="a"), prefill=Phase(size=8, name="b"))
    for dummy in range(1):
        other = Phases(decode=Phase(size=5, name="a"), prefill=Phase(size=8, name="b"))
    chosen = phases if get_device_sm() > 90 else other
    self.page_size = chosen.prefill.size
    self.pp_size = chosen.decode.size
"""
PHASES = """
    import dataclasses

    @dataclasses.dataclass
    class Phase:
        size: int
        name: str

    @dataclasses.dataclass
    class Phases:
        decode: Phase
        prefill: Phase
"""


def test_of_a_nested_setting_only_what_differs_is_open(run):
    result = run(NESTED, srt__phases=PHASES)
    assert result.effective["page_size"] == 8
    (open_field,) = result.undecided
    assert (open_field["field"], open_field["needs"], sorted(open_field["options"])) == ("pp_size", ["platform"], [4, 5])


def test_a_path_we_cannot_follow_makes_no_refusal_certain(run):
    result = run(
        """
        if get_device_sm() > 90:
            raise ValueError("on these cards")
        self.page_size = ServerArgs.no_such_table["x"]
        """
    )
    assert result.outcome == "unknown"
    assert "could not follow" in result.message


EXTRA = """
    try:
        from vllm.model_executor import Config
    except ImportError:

        class Config:
            pages = 16

    self.page_size = Config.pages
"""


@pytest.mark.parametrize(("packages", "expected"), [(None, 16), ({"vllm": "0.9"}, "open")])
def test_a_package_no_requirement_brings_is_there_only_where_told(run, packages, expected):
    result = run(EXTRA, facts={} if packages is None else {"packages": packages})
    assert result.effective.get("page_size", "open") == expected
    assert expected == 16 or result.undecided[0]["needs"] == ["vllm.model_executor.Config.pages"]


def test_values_of_the_standard_library_and_orjson_are_computed(run):
    result = run("import orjson, sys\nself.page_size = orjson.loads('{\"a\": 3}')['a'] + sys.maxsize")
    assert result.effective["page_size"] == 3 + 2**63 - 1


RENAMING = """
    from transformers import PretrainedConfig


    class NewConfig(PretrainedConfig):
        model_type = "new"

        def __init__(self, width=1, **kwargs):
            self.width = width
            if "LongForCausalLM" in kwargs["architectures"]:
                kwargs["architectures"].remove("LongForCausalLM")
                kwargs["architectures"].append("ShortForCausalLM")
            super().__init__(**kwargs)
"""


@pytest.mark.parametrize(("named", "expected"), [("LongForCausalLM", 16), ("ShortForCausalLM", 16), ("OtherForCausalLM", 1)])
def test_an_architecture_goes_by_the_name_its_configuration_class_gives_it(run, named, expected):
    result = run(
        """
        from sglang.srt.utils import get_config

        self.page_size = 16 if get_config(self.model_path).architectures[0] == "ShortForCausalLM" else 1
        """,
        model={"model_type": "new", "architectures": [named]},
        srt__utils="def get_device_sm():\n    return 0\n\n\ndef get_config(path):\n    return None\n",
        srt__configs__new=RENAMING,
    )
    assert result.effective["page_size"] == expected


HOST_CPU = """
    import platform, torch
    arm = platform.machine().lower() in ("aarch64", "arm64") and hasattr(torch, "cpu") and torch.cpu.is_available()
    self.page_size = 64 if arm else 128
"""


@pytest.mark.parametrize(
    ("card", "expected"), [("NVIDIA H200", 128), ("NVIDIA GB200", 64), ("NVIDIA GH200 480GB", 64), (None, "open")]
)
def test_the_processor_of_the_host_is_told_by_its_card(run, card, expected):
    """``--device cpu`` on a host with cards: is_host_cpu_arm64 chooses the attention back end (0.5.4 ... 0.5.23)."""
    result = run(HOST_CPU, facts={} if card is None else {"gpu_name": card})
    assert result.effective.get("page_size", "open") == expected
    assert expected != "open" or result.undecided[0]["needs"] == ["gpu_name"]
