"""Drift of four kinds is named; the story's hand-written unit is adopted while it serves, upgraded, and gone back to by hand."""

import json

import yaml

CANARY = "sk-canary-7d1f"
OLD = "sglang.service"


def test_drift_is_named_where_it_is_and_only_there(kept):
    assert "as promoted" in (kept / "drift-none.log").read_text()
    text = (kept / "drift.log").read_text()
    for code in ("DRIFT-UNIT", "DRIFT-DROPIN", "DRIFT-FILES", "DRIFT-BOOT"):
        assert code in text, code
    assert "mine.conf" in text and "sglang/version.py" in text and "TimeoutStopSec=7" in text


def test_an_ordinary_user_checks_and_gates_what_serves(kept, host):
    assert "SGLang itself" in (kept / "check.log").read_text()
    assert json.loads((kept / "reports/story-drift-adopt/kimi/result.json").read_text())["points"][0]["requests"]["ok"] > 0
    assert "verdict: " in (kept / "gate.log").read_text() and "sk-canary-5c0a" not in (kept / "gate.log").read_text()
    assert host.run("grep -rl sk-canary-5c0a /home/watcher").stdout == ""


def test_the_process_was_not_touched_and_no_client_saw_an_error(host):
    before, after = (host.check_output(f"cat /root/pid-{when}") for when in ("before", "after"))
    assert before == after != "0"
    codes = host.check_output("cat /root/client").split()
    assert len(codes) > 3
    assert set(codes) == {"200"}


def test_its_inventory_and_findings_were_told(kept):
    data = yaml.safe_load((kept / "adopted.yml").read_text())
    assert data["sglang_service_args"]["disable_cuda_graph"] is True
    assert data["sglang_service_api_key"] == "{{ vault_kimi_api_key }}"
    assert "disable_cuda_graph" in (kept / "adopt.log").read_text().replace("-", "_")


def test_a_second_adoption_changes_nothing(kept):
    assert "changed=0" in (kept / "again.log").read_text()


def test_the_key_is_nowhere_but_where_it_was_and_in_our_credentials(kept, host):
    assert not [path.name for path in kept.rglob("*") if path.is_file() and CANARY in path.read_text(errors="replace")]
    found = host.run(f"grep -rl {CANARY} /var/lib/inferops /etc/inferops /opt/inferops/tools").stdout.split()
    assert found == ["/etc/inferops/kimi/adopted.yaml"]
    assert host.file(found[0]).mode == 0o600


def test_a_failing_upgrade_went_back_to_the_old_unit(kept):
    assert "went back to release" in (kept / "failing.log").read_text()


def test_the_upgrade_took_over(kept):
    view = json.loads((kept / "upgraded.json").read_text())
    assert view["previous"] == view["history"][0]["release"] != view["promoted"]
    assert view["units"]["sglang-kimi.service"]["UnitFileState"] == "enabled"


def test_gone_back_by_hand_it_serves_in_its_old_unit(host, view):
    assert host.service(OLD).is_running and not host.service(OLD).is_enabled
    assert view.promoted == view.history[0]["release"]
    assert view.running() == []
    answer = host.check_output(f"curl -sf -H 'Authorization: Bearer {CANARY}' http://127.0.0.1:30000/v1/models")
    assert json.loads(answer)["data"][0]["id"] == "kimi-k2.6"
