"""The real sglang-router before the fake engine: workers come and go while clients are served, keys stay where they belong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from http.client import HTTPException
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils import _core
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.router.api import RouterApi, ensure, send
from router_process import RouterProcess, free_port

ADMIN, CLIENT = "admin-canary-1", "client-canary-2"


@pytest.fixture
def router(tmp_path):
    """router(**fields) → RouterProcess."""
    begun = []

    def launch(**fields):
        begun.append(RouterProcess(tmp_path / f"router{len(begun)}", free_port(), free_port(), **fields))
        return begun[-1]

    yield launch
    for process in begun:
        process.stop(kill=True)


def ask(url, tokens, key=None, found=None):
    """Return how many streamed chunks came; also put it into found."""
    messages = [{"role": "user", "content": "x"}]
    body = {"model": "kimi", "stream": True, "ignore_eos": True, "max_tokens": tokens, "messages": messages}
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    with urlopen(Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers), timeout=60) as answer:
        chunks = answer.read().count(b'"content"')
    if found is not None:
        found.append(chunks)
    return chunks


def test_workers_come_and_go_and_an_answer_that_has_begun_goes_on(start, router):
    process = router()
    api = RouterApi(process.url)
    one, two = (start("--served-model-name", "kimi", "--enable-metrics", timescale=4) for _ in range(2))
    assert [ensure(api, server.url, present=True) for server in (one, two, one)] == [True, True, False]
    assert ensure(api, "http://127.0.0.1:1", present=False) is False
    assert sorted(api.workers()) == sorted((one.url, two.url))
    found: list[int] = []
    clients = [threading.Thread(target=ask, args=(process.url, 400, None, found)) for _ in range(2)]
    for client in clients:
        client.start()
    while 'sglang:num_running_reqs{engine_type="unified",model_name="kimi",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 1.0' not in (
        one.get("/metrics")[1].decode()
    ):
        time.sleep(0.01)
    assert ensure(api, one.url, present=False, check=True) is True
    assert ensure(api, one.url, present=False) is True
    assert all(client.is_alive() for client in clients), "removed while both answers were on their way"
    assert [ask(process.url, 3) for _ in range(4)] == [ask(two.url, 3)] * 4
    for client in clients:
        client.join()
    assert found == [found[0]] * 2 and found[0] > 390
    assert one.log.count("POST /v1/chat") == 1


def test_a_worker_that_is_not_there_is_told_by_its_address(router):
    api = RouterApi(router().url)
    with pytest.raises(InferopsError, match=r"http://127\.0\.0\.1:9 is not listed after 1 s"):
        ensure(api, "http://127.0.0.1:9", present=True, wait_s=1)
    with pytest.raises(InferopsError, match="does not tell its workers"):
        RouterApi("http://127.0.0.1:9").workers()


def test_keys_are_asked_for_and_stand_in_no_argument_and_no_log(start, router):
    process = router(keys={"api_key": CLIENT, "admin_key": ADMIN})
    server = start("--served-model-name", "kimi", "--api-key", CLIENT, timescale=20)
    with pytest.raises(InferopsError, match="another key"):
        RouterApi(process.url, CLIENT).workers()
    api = RouterApi(process.url, ADMIN)
    assert ensure(api, server.url, present=True, worker_key=CLIENT) is True
    assert ask(process.url, 3, CLIENT) > 0
    assert send("POST", f"{process.url}/v1/chat/completions", None, {})[0] == 401
    assert send("POST", f"{process.url}/v1/chat/completions", "wrong", {})[0] == 401
    for folder in Path("/proc", str(process.process.pid), "task").iterdir():
        assert b"canary" not in (folder / "cmdline").read_bytes()
        assert b"canary" not in (folder / "environ").read_bytes()
    assert "canary" not in process.log
    assert "canary" not in json.dumps(send("GET", f"{process.url}/workers", ADMIN, None))


def test_a_router_that_lets_everybody_in_is_not_told_the_key_of_a_server(start, router):
    """It would send it for clients that bring none."""
    process = router()
    server = start("--served-model-name", "kimi", "--api-key", CLIENT, timescale=20)
    api = RouterApi(process.url)
    with pytest.raises(InferopsError, match="takes requests without a key"):
        ensure(api, server.url, present=True, worker_key=CLIENT)
    assert api.workers() == {}
    api.send("POST", f"{process.url}/workers", None, {"url": server.url, "api_key": CLIENT})
    while not api.workers():
        time.sleep(0.01)
    assert ask(process.url, 3) > 0, "the router is no longer like that: the refusal may go"


def test_a_field_the_router_does_not_have_is_refused_before_it_starts(tmp_path, router):
    process = router()
    config = tmp_path / "config.json"
    for fields, told in (({"polcy": "x"}, "polcy"), ({"policy": "x"}, "KeyError")):
        config.write_text(json.dumps({"host": "127.0.0.1", "port": 1} | fields))
        words = [*process.words[:-1], "--check", str(config)]
        done = subprocess.run(words, env=process.env, capture_output=True, text=True, check=False)
        assert done.returncode == 64 and told in done.stderr
    assert process.stop() == 0


@pytest.fixture
def enrol(tmp_path):
    """enrol(worker, *routers) → the program of the unit, as systemd starts it."""
    begun = []
    (tmp_path / "credentials").mkdir()
    (tmp_path / "credentials" / "router-key").write_text(ADMIN)
    (tmp_path / "credentials" / "engine.yaml").write_text(f'api-key: "{CLIENT}"\n')
    core = next(Path(place).parent for place in _core.__path__)

    def launch(worker, *routers):
        words = ["enrol", "--worker", worker, *(word for router in routers for word in ("--router", router))]
        words += ["--key-credential", "router-key", "--config-credential", "engine.yaml"]
        env = {**os.environ, "PYTHONPATH": str(core), "CREDENTIALS_DIRECTORY": str(tmp_path / "credentials")}
        begun.append(subprocess.Popen([sys.executable, "-m", "_core.cli", *words], env=env, stderr=subprocess.PIPE, text=True))
        return begun[-1]

    yield launch
    for process in begun:
        process.kill()
        process.communicate()


def until(holds, seconds=15):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_server_enrols_comes_back_after_a_start_of_the_router_and_leaves(start, router, enrol):
    process = router(keys={"api_key": CLIENT, "admin_key": ADMIN})
    api = RouterApi(process.url, ADMIN)
    server = start("--served-model-name", "kimi", "--api-key", CLIENT, timescale=20)
    gone = f"http://127.0.0.1:{free_port()}"
    enrolled = enrol(server.url, gone, process.url)
    until(lambda: server.url in api.workers() and api.workers()[server.url].healthy)
    assert ask(process.url, 3, CLIENT) > 0
    process.stop(kill=True)
    process.start()
    until(lambda: server.url in api.workers())
    enrolled.terminate()
    assert enrolled.wait(15) == 0
    assert api.workers() == {}
    told = enrolled.stderr.read()
    assert f"{gone}: not left" in told and f"{process.url}: left" in told
    assert "canary" not in told


def test_a_server_with_a_key_stays_out_of_a_router_without_one(start, router, enrol):
    process = router()
    server = start("--served-model-name", "kimi", "--api-key", CLIENT, timescale=20)
    enrolled = enrol(server.url, process.url)
    assert "takes requests without a key" in enrolled.stderr.readline()
    assert RouterApi(process.url).workers() == {}


def test_servers_are_replaced_one_by_one_while_clients_go_on_asking_and_none_sees_an_error(start, router, enrol):
    """The order of a transaction, with the program of its unit: leave, drain, stop, start, enrol."""
    process = router(keys={"api_key": CLIENT, "admin_key": ADMIN})
    api = RouterApi(process.url, ADMIN)

    def new():
        return start("--served-model-name", "kimi", "--api-key", CLIENT, "--enable-metrics", timescale=8)

    def listed(server):
        return server.url in api.workers() and api.workers()[server.url].healthy

    fleet = [(server, enrol(server.url, process.url)) for server in (new(), new())]
    until(lambda: all(listed(server) for server, _ in fleet))
    over, wrong, whole = threading.Event(), [], []

    def client(tokens):
        while not over.is_set():
            try:
                whole.append(ask(process.url, tokens, CLIENT) >= tokens)
            except (OSError, HTTPException) as exc:
                wrong.append(repr(exc))

    clients = [threading.Thread(target=client, args=(tokens,)) for tokens in (16, 16, 600)]
    for each in clients:
        each.start()
    replaced = []
    for server, enrolled in fleet:
        enrolled.terminate()
        assert enrolled.wait(20) == 0
        until(lambda server=server: re.search(r"num_running_reqs\{.*\} 0\.0", server.get("/metrics")[1].decode()))
        server.process.kill()
        server.process.wait(20)
        fresh = new()
        enrol(fresh.url, process.url)
        until(lambda fresh=fresh: listed(fresh))
        replaced.append(fresh)
    seen = [server.log.count("POST /v1/chat") for server in replaced]
    until(lambda: all(server.log.count("POST /v1/chat") > before for server, before in zip(replaced, seen, strict=True)))
    over.set()
    for each in clients:
        each.join()
    assert wrong == []
    assert all(whole) and len(whole) > 20
    assert sorted(api.workers()) == sorted(server.url for server in replaced)
