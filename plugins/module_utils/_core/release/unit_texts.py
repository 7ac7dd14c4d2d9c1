# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Names and texts of the units around a release; all but the service unit itself are made here."""

from __future__ import annotations

import re

from ..errors import InferopsError
from .spec import ReleaseSpec
from .systemd import literal, quote, setting, split, without_section

# Exit statuses of `inferops transact`, told to systemd below: 1 is a decided outcome (the host went back and serves), 4 is a
# decided outcome that leaves the unit failed, since nothing serves. Anything else, a kill included, starts the runner again.
WENT_BACK = 1
NOTHING_SERVES = 4
ENROL_STOP_S = 30


def promoted_unit(instance: str) -> str:
    return f"sglang-{instance}.service"


def runner_unit(instance: str) -> str:
    return f"inferops-release@{instance}.service"


def front_socket(instance: str) -> str:
    return f"sglang-{instance}-front.socket"


def front_service(instance: str) -> str:
    return f"sglang-{instance}-front.service"


def front_enrolment(instance: str) -> str:
    return f"sglang-{instance}-front-enrolment.service"


def run_unit_text(spec: ReleaseSpec) -> str:
    """Return the text of the unit a candidate runs in: it cannot be enabled, and gives way to the promoted unit."""
    body = without_section(spec.unit_text, "Install").rstrip("\n")
    return f"{body}\n\n[Unit]\n# Never enabled: after a reboot only {promoted_unit(spec.instance)} starts.\n" + (
        f"Conflicts={promoted_unit(spec.instance)}\n"
    )


def runner_text(spec: ReleaseSpec, state_dir: str, unit_dir: str) -> str:
    """Return the unit of the transaction. A killed runner starts again and then finishes or goes back."""
    command = [spec.tools["python"], spec.tools["archive"], "transact", "--instance", spec.instance]
    command += ["--state-dir", state_dir, "--unit-dir", unit_dir]
    return f"""\
# Written by inferops.sglang.release.
[Unit]
Description=Release transaction of SGLang instance {spec.instance}
After=network.target
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={quote(command)}
Restart=on-failure
RestartSec=2
RestartPreventExitStatus={WENT_BACK} {NOTHING_SERVES}
SuccessExitStatus={WENT_BACK}
KillMode=mixed
TimeoutStopSec=30

[Install]
WantedBy=multi-user.target
"""


def front_texts(spec: ReleaseSpec) -> dict[str, str]:
    """Return the units by which clients are admitted, by name; none when something else admits them.

    Neither is enabled: the runner opens the socket, after a promotion and after a boot, when the proof has passed.
    """
    if spec.front["kind"] == "none":
        return {}
    command = [spec.tools["python"], spec.tools["archive"], "front", "--to", f"127.0.0.1:{spec.port}"]
    stop_s = int(spec.timeouts["drain_s"]) + 30
    texts = {front_enrolment(spec.instance): enrolment_text(spec)} if spec.front["kind"] == "router" else {}
    return texts | {
        front_socket(spec.instance): f"""\
# Written by inferops.sglang.release. Not enabled: the transaction opens it once the release is promoted and proven.
[Unit]
Description=Front of SGLang instance {spec.instance}

[Socket]
ListenStream={spec.front["listen"]}
""",
        front_service(spec.instance): f"""\
# Written by inferops.sglang.release. On stop it takes no new connection and lets the open ones end.
[Unit]
Description=Front of SGLang instance {spec.instance}, towards 127.0.0.1:{spec.port}
Requires={front_socket(spec.instance)}
After={front_socket(spec.instance)}

[Service]
Type=notify
ExecStart={quote(command)}
TimeoutStopSec={stop_s}
DynamicUser=yes
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
LimitNOFILE=16384
""",
    }


def enrolment_text(spec: ReleaseSpec) -> str:
    """Return the unit that keeps the server in the lists of its routers, which forget them with each start."""
    command = [spec.tools["python"], spec.tools["archive"], "enrol", "--worker", spec.front["worker"]]
    command += [word for router in spec.front["routers"] for word in ("--router", router)]
    credentials = ""
    if spec.front.get("key_file"):
        command += ["--key-credential", "router-key"]
        credentials += f"LoadCredential=router-key:{spec.front['key_file']}\n"
    if spec.secrets_file:
        command += ["--config-credential", "engine.yaml"]
        credentials += f"LoadCredential=engine.yaml:{spec.secrets_file}\n"
    return f"""\
# Written by inferops.sglang.release. On stop the server leaves the routers' lists; what they have begun to relay goes on.
[Unit]
Description=Enrolment of SGLang instance {spec.instance} with its routers
After=network.target {promoted_unit(spec.instance)} {front_socket(spec.instance)}

[Service]
Type=notify
ExecStart={quote(command)}
{credentials}# Ready when the first router lists the server as healthy; it tries on until then.
TimeoutStartSec=infinity
TimeoutStopSec={ENROL_STOP_S}
Restart=always
RestartSec=2
DynamicUser=yes
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
"""


def without_tools(text: str) -> str:
    """Return the text of a front unit without the place of the tools that run it.

    >>> without_tools("[Service]\\nExecStart=/t/1/bin/python /t/1/inferops.pyz front --to 127.0.0.1:1")
    '[Service]\\nExecStart=front --to 127.0.0.1:1'
    """
    return re.sub(r"(?m)^ExecStart=.* (?=front --to |enrol --worker )", "ExecStart=", text)


def check_exec(spec: ReleaseSpec) -> None:
    """Refuse a unit that would start something else than what was checked: the words behind ``--`` are launch + argv."""
    key = "Exec" if spec.in_container else "ExecStart"
    lines = setting(spec.unit, key)
    if len(lines) != 1:
        raise InferopsError(f"the unit has {len(lines)} {key}= lines, not one", where="spec.unit", do="write exactly one")
    words = split(lines[0])
    wanted = [*spec.engine["launch"], *spec.argv]
    if "--" not in words:
        raise InferopsError(
            f"{key}= has no -- before the engine's words", where="spec.unit", do="start the wrapper: … serve … -- …"
        )
    found = [literal(word) for word in words[words.index("--") + 1 :]]
    if found != wanted:
        at = next(
            (i for i, pair in enumerate(zip(found, wanted, strict=False)) if pair[0] != pair[1]), min(len(found), len(wanted))
        )
        raise InferopsError(
            "the unit would start other words than the ones that were checked",
            where=f"spec.unit, {key}= word {at} after --",
            why=f"unit: {found[at : at + 1]}, launch + argv: {wanted[at : at + 1]}",
            do=f"render {key}= from the same list with the filter systemd_quote",
        )
    if spec.in_container:
        _check_quadlet(spec)
    elif setting(spec.unit, "Type") != ["notify"]:
        raise InferopsError(
            "the unit is not Type=notify", where="spec.unit", why="started would not mean ready", do="set Type=notify"
        )


def _check_quadlet(spec: ReleaseSpec) -> None:
    """Refuse a quadlet that would run another image than the one that was read, or whose start would not mean ready."""
    image = spec.engine["container"]["image"]
    if setting(spec.unit, "Image") != [image]:
        raise InferopsError(
            "the quadlet names another image than the engine",
            where="spec.unit, Image=",
            why=f"quadlet: {setting(spec.unit, 'Image')}, engine: {image}",
            do="render Image= from engine.container.image",
        )
    if setting(spec.unit, "Notify") != ["true"]:
        raise InferopsError(
            "the quadlet has no Notify=true", where="spec.unit", why="started would not mean ready", do="set Notify=true"
        )
