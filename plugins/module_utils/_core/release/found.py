# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A server that somebody else has written: its command line and environment taken apart, secrets set aside, told as inventory."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InferopsError
from .systemd import setting, split

# SGLang's own second spellings (srt/server_args.py, srt/arg_groups/fields of 0.5.23); all others are spelled like their field.
ALIASES = {
    "model": "model_path",
    "tp": "tp_size",
    "dp": "dp_size",
    "ep": "ep_size",
    "tensor_parallel_size": "tp_size",
    "pipeline_parallel_size": "pp_size",
    "data_parallel_size": "dp_size",
    "expert_parallel_size": "ep_size",
}
SECRET_FIELDS = ("api_key", "admin_api_key", "ssl_keyfile_password")
# Set by variables of their own, or by the role; what is left goes into sglang_service_args.
OWNED = {
    "model_path": "sglang_service_model_path",
    "served_model_name": "sglang_service_served_name",
    "port": "sglang_service_port",
}
SECRET_ENV = re.compile(r"TOKEN|SECRET|PASSWORD|API_?KEY|CREDENTIAL", re.IGNORECASE)
# Given by systemd, the shell or the account, not by whoever wrote the unit.
GIVEN = re.compile(
    r"(PATH|HOME|LANG|LC_\w+|LOGNAME|USER|SHELL|PWD|OLDPWD|SHLVL|_|TERM|INVOCATION_ID|JOURNAL_STREAM|SYSTEMD_\w+|NOTIFY_SOCKET"
    r"|MEMORY_PRESSURE_\w+|LISTEN_\w+|WATCHDOG_\w+|CREDENTIALS_DIRECTORY|\w+_DIRECTORY|MAINPID|HOSTNAME)\Z"
)
DEFAULT_PORT = 30000


@dataclass(frozen=True)
class Found:
    """``argv`` holds no secret; ``secrets`` and ``secret_env`` map field or name to value and are never printed."""

    launch: tuple[str, ...]
    argv: tuple[str, ...]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    env: Mapping[str, str] = field(default_factory=dict)
    secret_env: Mapping[str, str] = field(default_factory=dict, repr=False)
    image: str | None = None

    @property
    def fields(self) -> dict[str, Any]:
        return fields_of(self.argv)

    @property
    def port(self) -> int:
        return int(self.fields.get("port", DEFAULT_PORT))

    @property
    def model_path(self) -> str:
        found = self.fields.get("model_path")
        if not found:
            raise InferopsError(
                "the command line names no model", where="--model-path", do="adopt a server that was started with one"
            )
        return str(found)

    @property
    def served_name(self) -> str:
        return str(self.fields.get("served_model_name") or self.model_path)


def take_apart(words: Iterable[str], env: Mapping[str, str]) -> Found:
    """Return what a command line starts; the words before the engine's may be those of ``docker run`` or ``podman run``.

    >>> found = take_apart(["/e/python", "-m", "sglang.launch_server", "--model", "/m", "--api-key", "k", "--tp=2"], {})
    >>> found.argv, found.secrets, found.launch[-1], found.fields
    (('--model', '/m', '--tp=2'), {'api_key': 'k'}, 'sglang.launch_server', {'model_path': '/m', 'tp_size': 2})
    """
    all_words = list(words)
    begin = _first_argument(all_words)
    image, given = (None, dict(env))
    if _is_container(all_words[: begin - 1]):
        image, more = _container(all_words[:begin])
        given = {**given, **more}
    argv, secrets = _without_secrets(all_words[begin:])
    kept = {name: value for name, value in given.items() if not GIVEN.match(name)}
    return Found(
        launch=tuple(_launch(all_words[:begin])),
        argv=tuple(argv),
        secrets=secrets,
        env={name: value for name, value in sorted(kept.items()) if not SECRET_ENV.search(name)},
        secret_env={name: value for name, value in sorted(kept.items()) if SECRET_ENV.search(name)},
        image=image,
    )


def from_text(text: str) -> Found:
    """Return what a ``docker run`` line or the text of a quadlet or unit would start; variables of a shell are refused."""
    key = next((name for name in ("ExecStart", "Exec") if setting(text, name)), None)
    if key is not None:
        words = split(setting(text, key)[-1])
        pairs = [word for line in setting(text, "Environment") for word in split(line)]
        image = setting(text, "Image")
        found = take_apart([word.replace("$$", "$").replace("%%", "%") for word in words], _pairs(pairs))
        return found if not image else Found(found.launch, found.argv, found.secrets, found.env, found.secret_env, image[-1])
    joined = text.replace("\\\n", " ")
    if re.search(r"\$[({A-Za-z]", joined):
        raise InferopsError("the command line holds variables of a shell", where="command", do="write their values")
    return take_apart(shlex.split(joined), {})


def fields_of(argv: Iterable[str]) -> dict[str, Any]:
    """Return arguments by field name, values as JSON knows them; several values are a list, none is true.

    >>> fields_of(["--pp-size", "8", "--enable-metrics", "--cuda-graph-bs", "1", "2", "--x=-1"])
    {'pp_size': 8, 'enable_metrics': True, 'cuda_graph_bs': [1, 2], 'x': -1}
    """
    out: dict[str, list[str]] = {}
    name = ""
    for word in argv:
        if word.startswith("--"):
            flag, equals, value = word[2:].partition("=")
            name = flag.replace("-", "_")
            name = ALIASES.get(name, name)
            out[name] = [value] if equals else []
        elif name:
            out[name].append(word)
        else:
            raise InferopsError(
                f"{word!r} stands before the first flag", where="command line", do="set sglang_service_argv by hand"
            )
    return {
        key: True if not found else [_value(v) for v in found] if len(found) > 1 else _value(found[0])
        for key, found in out.items()
    }


def inventory(found: Found, *, instance: str, origin: str, site_packages: str | None, told: Iterable[str]) -> str:
    """Return the variables of a host as YAML for a person: what ran, by the names of the roles, secrets as vault names."""
    fields = found.fields
    lines = ["---", f"# Read by adopt.yml from {origin}. Yours from here on: adopt.yml never overwrites it."]
    lines += ["# upgrade.yml takes the server over with these arguments; what the check says of them:"]
    lines += [f"#   {line}" for line in told] or ["#   nothing"]
    lines.append(f"sglang_service_instance: {instance}")
    lines += ["sglang_service_profile:", f"  name: adopted-{instance}", f"  model: {{served_name: {_yaml(found.served_name)}}}"]
    for name, variable in OWNED.items():
        if name in fields and name != "served_model_name":
            lines.append(f"{variable}: {_yaml(fields[name])}")
    if "host" in fields:
        lines.append(
            f"# --host {fields['host']}: the engine will listen on loopback; clients reach it by this front, once it is promoted."
        )
    lines.append(f"sglang_release_front_listen: 0.0.0.0:{_front_port(found.port)}")
    if "config" in fields:
        lines.append(f"# --config {fields['config']} was read too: carry over what it holds.")
    rest = {name: value for name, value in fields.items() if name not in (*OWNED, "host", "config")}
    lines.append("sglang_service_args:" + ("" if rest else " {}"))
    lines += [f"  {name}: {_yaml(value)}" for name, value in rest.items()]
    lines.append("sglang_service_env:" + ("" if found.env or found.secret_env else " {}"))
    lines += [f"  {name}: {_yaml(value)}" for name, value in found.env.items()]
    if found.secret_env:
        lines.append(
            "  # Every user of the host can read the environment in a unit: leave these out where the server does not need them."
        )
    for name in found.secret_env:
        lines.append(f'  {name}: "{{{{ {vault_name(instance, name)} }}}}"')
    for name in found.secrets:
        lines.append(f'sglang_service_{name}: "{{{{ {vault_name(instance, name)} }}}}"')
    if found.secrets or found.secret_env:
        lines.append("# The values are not written anywhere by adopt.yml: put them into a vault under these names.")
    if found.image:
        lines.append(f"# It ran in a container of {found.image}.")
    elif site_packages:
        lines.append(f"# Its engine is in {site_packages}; the role sglang_engine installs one beside it from a lock.")
    return "\n".join(lines) + "\n"


def vault_name(instance: str, name: str) -> str:
    return "vault_" + re.sub(r"[^a-z0-9]+", "_", f"{instance}_{name}".lower())


def _front_port(port: int) -> int:
    """Return the port of the front: clients' habit where the engine can move away from it is for a person to choose."""
    return 8000 if port != 8000 else 8080


def _first_argument(words: list[str]) -> int:
    for index, word in enumerate(words):
        if word.endswith("sglang.launch_server") or word.endswith("sglang/launch_server.py"):
            return index + 1
        if word == "serve" and index and words[index - 1].rpartition("/")[2] == "sglang":
            return index + 1
    raise InferopsError(
        "no SGLang server is in this command line",
        where="command line",
        why="neither sglang.launch_server nor sglang serve stands in it",
        do="name the unit whose process is the server, or give its command line as text",
    )


def _launch(head: list[str]) -> list[str]:
    """Return the engine's own words in front of its arguments: from the interpreter on."""
    for index in range(len(head) - 1, -1, -1):
        if re.match(r"python[\d.]*\Z", head[index].rpartition("/")[2]):
            return head[index:]
    return head[-2:]


def _without_secrets(words: list[str]) -> tuple[list[str], dict[str, str]]:
    """Set aside the values of secret flags, in either spelling; argparse takes any prefix of one too."""
    kept: list[str] = []
    secrets: dict[str, str] = {}
    position = 0
    while position < len(words):
        flag, equals, value = words[position].partition("=")
        name = _secret_field(flag)
        if name is None:
            kept.append(words[position])
        elif equals:
            secrets[name] = value
        elif position + 1 < len(words):
            position += 1
            secrets[name] = words[position]
        position += 1
    return kept, secrets


def _secret_field(flag: str) -> str | None:
    name = flag.removeprefix("--").replace("-", "_")
    if not flag.startswith("--") or len(name) < 2:
        return None
    if name == "ssl_keyfile":
        return None
    return next((known for known in SECRET_FIELDS if known.startswith(name) and (known == name or len(name) >= 4)), None)


def _is_container(words: list[str]) -> bool:
    return any(word.rpartition("/")[2] in ("docker", "podman", "nerdctl") for word in words) and "run" in words


def _container(words: list[str]) -> tuple[str | None, dict[str, str]]:
    """Return image and environment of the words of ``docker run`` up to the engine's."""
    pairs: list[str] = []
    image = None
    position = words.index("run") + 1
    while position < len(words):
        word = words[position]
        if word in ("-e", "--env"):
            position += 1
            pairs.append(words[position])
        elif word.startswith(("--env=", "-e=")):
            pairs.append(word.partition("=")[2])
        elif not word.startswith("-") and re.search(r"[:/@]", word) and not re.match(r"[/.]|\d+:\d+|[^:]+:/", word):
            image = image or word
        position += 1
    return image, _pairs(pairs)


def _pairs(words: Iterable[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words if "=" in word)


def _value(text: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError:
        return text
    # Only what reads back as the same word: 1e3, 007 and texts in braces stay as they were written.
    return found if isinstance(found, (int, float)) and not isinstance(found, bool) and str(found) == text else text


def _yaml(value: Any) -> str:
    """Return a value as YAML on one line: JSON is YAML; plain words need no quotes."""
    if (
        isinstance(value, str)
        and re.match(r"[A-Za-z/][A-Za-z0-9_./-]*\Z", value)
        and value.lower() not in ("true", "false", "yes", "no", "on", "off", "null")
    ):
        return value
    return json.dumps(value)
