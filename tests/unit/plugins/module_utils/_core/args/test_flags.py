"""The flag table read from published wheels, against what the releases' own parsers do."""

from __future__ import annotations

import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.flags import UNKNOWN, read_flags
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.parser import ArgvError, parse
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError

# version: (flag strings without the --no- twins, fields); the first recorded from the release's own parser.
SIZES = {"0.5.10": (364, 349), "0.5.12": (399, 381), "0.5.14": (431, 404), "0.5.19": (516, 488), "0.5.23": (547, 546)}


@pytest.fixture(scope="module")
def tables(wheel):
    cache = {}

    def get(version):
        if version not in cache:
            cache[version] = read_flags(open_source(wheel(version)))
        return cache[version]

    return get


@pytest.mark.wheel
@pytest.mark.parametrize("version", SIZES)
def test_every_flag_of_the_release_is_in_the_table_and_decided(tables, version):
    table = tables(version)
    assert (sum(len(flag.strings) for flag in table.flags), len(table.fields)) == SIZES[version]
    assert [flag.strings for flag in table.flags if flag.choices is UNKNOWN or flag.default is UNKNOWN] == []
    assert {flag.action for flag in table.flags} <= {
        "store",
        "store_true",
        "boolean_optional",
        "custom",
        "deprecated",
        "deprecated_true",
        "deprecated_const",
        "deprecated_alias",
        "deprecated_error",
    }
    assert all(flag.source.rpartition(":")[2].isdigit() for flag in table.flags)


@pytest.mark.wheel
@pytest.mark.parametrize("version", ["0.5.10", "0.5.12", "0.5.14", "0.5.23"])
def test_parsing_ends_as_it_ended_when_the_release_was_executed(tables, fixtures, version):
    cases = json.loads((fixtures / "args" / "parse_cases.json").read_text())
    mine = [case for case in cases if case["version"] == version]
    assert mine
    wrong = []
    for case in mine:
        try:
            parse(tables(version), case["argv"])
            got = None
        except ArgvError as exc:
            got = exc.message
        fits = got is None if case["message"] is None else got is not None and case["message"] in got
        if not fits:
            wrong.append((case["argv"], case["message"], got))
    assert wrong == []


@pytest.mark.wheel
def test_registries_enums_and_constants_become_choices(tables):
    new, old = tables("0.5.23"), tables("0.5.12")
    for table in (new, old):
        assert {"auto", "kimi_k2"} <= set(table.by_string("--reasoning-parser").choices)
        assert "kimi_k2" in table.by_string("--tool-call-parser").choices
    assert new.by_string("--kv-canary-real-data").choices == ("none", "partial", "all")
    assert new.by_string("--cuda-graph-backend-decode").choices == ("full", "breakable", "disabled")
    # The environment may add a value: what SGLang accepts in some environment is not refused.
    assert "token_oracle" in new.by_string("--sampling-backend").choices


@pytest.mark.wheel
def test_a_default_computed_from_the_platform_is_unknown(tables):
    assert tables("0.5.12").fields["pre_warm_nccl"] is UNKNOWN


@pytest.mark.wheel
def test_destinations_are_fields(tables):
    parsed = parse(tables("0.5.12"), ["--model-path", "m", "--tensor-parallel-size", "2", "--pp-size=4"])
    assert (parsed.values["tp_size"], parsed.values["pp_size"]) == (2, 4)
    assert parsed.explicit == {"model_path": "--model-path", "tp_size": "--tensor-parallel-size", "pp_size": "--pp-size"}


@pytest.mark.wheel
def test_a_short_form_is_kept_as_it_was_typed(tables):
    for version in ("0.5.12", "0.5.23"):
        parsed = parse(tables(version), ["--model", "m", "--tp", "2", "--context-len=4096"])
        assert parsed.explicit == {"model_path": "--model", "tp_size": "--tp", "context_length": "--context-len"}


@pytest.mark.wheel
def test_converters_of_the_release_are_run(tables):
    table = tables("0.5.23")
    argv = ["--model-path", "m", "--context-length", "4k", "--cuda-graph-config", '{"decode": {"backend": "full"}}']
    values = parse(table, argv).values
    assert values["context_length"] == 4000
    assert values["cuda_graph_config"] == {"decode": {"backend": "full"}}
    with pytest.raises(ArgvError, match="unknown phase 'decoding'"):
        parse(table, ["--model-path", "m", "--cuda-graph-config", '{"decoding": {}}'])


def test_an_unknown_shape_is_refused_by_name(tmp_path):
    (tmp_path / "sglang" / "srt").mkdir(parents=True)
    (tmp_path / "sglang" / "srt" / "server_args.py").write_text("class ServerArgs:\n    pass\n")
    (tmp_path / "sglang" / "version.py").write_text("__version__ = '9.9.9'\n")
    with pytest.raises(InferopsError) as caught:
        read_flags(open_source(tmp_path))
    assert "9.9.9" in caught.value.what
    assert "srt/server_args.py" in caught.value.where


@pytest.mark.parametrize("make", ["nothing", "empty", "not a wheel", "other wheel"])
def test_a_path_without_sglang_is_refused(tmp_path, make):
    import zipfile

    path = tmp_path / "x"
    if make == "empty":
        path.mkdir()
    elif make == "not a wheel":
        path.write_text("text")
    elif make == "other wheel":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("other/__init__.py", "")
    with pytest.raises(InferopsError) as caught:
        open_source(path)
    assert caught.value.why
    assert caught.value.do


def test_the_standard_library_does_not_crash_the_readers(tmp_path):
    import shutil
    import sysconfig

    stdlib = sysconfig.get_paths()["stdlib"]
    srt = tmp_path / "sglang" / "srt"
    srt.mkdir(parents=True)
    for name in ("argparse", "ast", "dataclasses", "enum", "typing", "inspect", "json/decoder"):
        shutil.copyfile(f"{stdlib}/{name}.py", srt / "server_args.py")
        with pytest.raises(InferopsError):
            read_flags(open_source(tmp_path))
