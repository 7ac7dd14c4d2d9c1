# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The unit of a server: what was checked is what is started, and its limits fit the model (R60, R61)."""

from __future__ import annotations

from pathlib import Path

import jinja2
import jinja2.nativetypes
import pytest
import yaml
from ansible_collections.inferops.sglang.plugins.filter.systemd import systemd_quote
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.systemd import setting, unquote
from ansible_collections.inferops.sglang.plugins.module_utils._core.start_limits import start_limits

TEMPLATES = Path(__file__).resolve().parents[3] / "roles" / "sglang_service" / "templates"
IMAGE = "registry.example/sglang@sha256:" + "d" * 64
QUADLET = "sglang.container.j2"
HARD = ["a b", "50%", "$HOME", 'say "x"', "back\\slash", "", "ünï", "new\nline", "{curly}"]


@pytest.fixture
def render():
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    environment.filters["inferops.sglang.systemd_quote"] = systemd_quote
    environment.filters["to_json"] = lambda value: __import__("json").dumps(value)

    def call(name="sglang.service.j2", **changes):
        values = {
            "sglang_service_instance": "kimi",
            "sglang_service_user": "sglang",
            "sglang_service_group": "sglang",
            "sglang_service_cache_dir": "/var/cache/inferops/x",
            "sglang_service_drain_s": 300,
            "__sglang_service_limits": start_limits(595_000_000_000, 200, 900),
            "__sglang_service_command": ["/py", "serve", "--release-dir", "/r/@RELEASE@", "--", "/e", "--pp-size", "8"],
            "__sglang_service_full_env": {"HOME": "/h"},
            "__sglang_service_has_secret": False,
            "__sglang_service_container": {
                "image": IMAGE,
                "devices": ["nvidia.com/gpu=all"],
                "ipc": "host",
                "shm_mib": 64,
                "args": [],
            },
            "__sglang_service_podman_args": ["--ipc=host"],
            "__sglang_service_account": {"uid": 997, "group": 996},
            "sglang_service_engine": {"site_packages": "/opt/inferops/engines/0.5.23-d/site-packages"},
            "sglang_service_tools": {"archive": "/opt/inferops/tools/t/inferops.pyz"},
            "sglang_service_model_path": "/srv/models/kimi",
            "__sglang_service_secrets_file": "/etc/inferops/kimi/engine.yaml",
        }
        return environment.from_string((TEMPLATES / name).read_text()).render({**values, **changes})

    return call


def test_every_word_comes_out_as_it_went_in(render):
    words = ["/py", "serve", "--", *HARD]
    (line,) = setting(render(__sglang_service_command=words), "ExecStart")
    assert unquote(line) == words


@pytest.mark.parametrize("value", HARD)
def test_every_variable_comes_out_as_it_went_in(render, value):
    (line,) = setting(render(__sglang_service_full_env={"NAME": value}), "Environment")
    assert unquote(line, exec_line=False) == [f"NAME={value}"]


def test_r60_the_start_is_given_the_time_that_loading_takes(render):
    (start_s,) = setting(render(), "TimeoutStartSec")
    assert int(start_s) >= 595e9 / 2**20 / 200


def test_r61_the_restart_limit_can_trigger(render):
    text = render()
    interval, burst, start, pause = (
        int(setting(text, name)[0]) for name in ("StartLimitIntervalSec", "StartLimitBurst", "TimeoutStartSec", "RestartSec")
    )
    assert interval > burst * (start + pause)
    assert setting(text, "RestartPreventExitStatus") == ["64"]


def test_the_drain_has_a_limit_and_started_means_ready(render):
    text = render()
    assert setting(text, "TimeoutStopSec") == ["300"]
    assert setting(text, "Type") == ["notify"]


def test_a_secret_is_a_credential_and_nothing_else(render):
    text = render(__sglang_service_has_secret=True, sglang_service_api_key="hunter2", sglang_service_admin_api_key="")
    assert setting(text, "LoadCredential") == ["engine.yaml:/etc/inferops/kimi/engine.yaml"]
    assert "hunter2" not in text
    assert setting(render(), "LoadCredential") == []


def test_the_file_of_secrets_holds_the_keys_that_are_set(render):
    assert render("engine.yaml.j2", sglang_service_api_key='a"b', sglang_service_admin_api_key="") == 'api-key: "a\\"b"\n'


def test_numbers_given_on_the_command_line_are_words():
    """`-e sglang_service_start_base_s=60` hands over a string."""
    variables = yaml.safe_load((TEMPLATES.parent / "vars" / "main.yml").read_text())
    environment = jinja2.nativetypes.NativeEnvironment(undefined=jinja2.StrictUndefined)
    environment.filters["inferops.sglang.start_limits"] = start_limits
    names = ("sglang_service_model_size_bytes", "sglang_service_load_mib_per_s", "sglang_service_start_base_s")
    words = dict(zip(names, ("595000000000", "200", "900"), strict=True))
    assert environment.from_string(variables["__sglang_service_limits"]).render(words) == start_limits(595_000_000_000, 200, 900)


def test_a_quadlet_hands_over_every_word_and_variable_for_systemd_to_read_once(render):
    words = ["/py", "serve", "--", *HARD]
    text = render(QUADLET, __sglang_service_command=words, __sglang_service_full_env={"NAME": "50% of $HOME"})
    (line,) = setting(text, "Exec")
    assert unquote(line) == words
    # Behind podman's generator it stands in ExecStart=, where systemd replaces variables.
    assert ["NAME=50% of $HOME"] in [unquote(value) for value in setting(text, "Environment")]


def test_a_quadlet_runs_the_image_by_digest_as_the_account_and_means_ready(render):
    text = render(QUADLET)
    assert setting(text, "Image") == [IMAGE]
    assert (setting(text, "User"), setting(text, "Group")) == (["997"], ["996"])
    assert setting(text, "Notify") == ["true"]
    assert setting(text, "AddDevice") == ["nvidia.com/gpu=all"]
    assert "AddDevice" not in render(QUADLET, __sglang_service_container={"image": IMAGE, "devices": []})
    assert int(setting(text, "TimeoutStopSec")[0]) > 300
    assert setting(text, "RestartPreventExitStatus") == ["64"]
    assert "# Engine: /opt/inferops/engines/0.5.23-d/" in text


def test_a_secret_of_a_quadlet_is_in_a_file_alone(render):
    text = render(QUADLET, __sglang_service_has_secret=True)
    assert "Volume=/run/inferops-%N/engine.yaml:/run/inferops/engine.yaml:ro" in text
    assert "--mode=0400 /etc/inferops/kimi/engine.yaml" in text
    assert "engine.yaml" not in render(QUADLET)
