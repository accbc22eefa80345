"""Crons, idempotency keys and webhooks of flows."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4

import pytest

from flows import prompt
from rig import eventually

root_only = pytest.mark.parametrize("prefix", [""], ids=["root"], indirect=True)


@pytest.fixture
def receiver():
    """Receiver of webhook calls: its address, and a function that waits for this number of calls."""
    calls = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            calls.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", lambda number: eventually(lambda: len(calls) >= number and calls, "webhook calls")
        server.shutdown()


def test_repeated_request_creates_one_run(client, thread):
    create = lambda: client.runs.create(thread, "flow-chain", input=prompt("tea"), headers={"Idempotency-Key": key})["run_id"]
    key = str(uuid4())
    assert create() == create()
    assert len(client.runs.list(thread)) == 1
    client.runs.join(thread, create())
    assert client.threads.get_state(thread)["values"]["visits"] == {"draft": 1, "polish": 1, "finish": 1}


@root_only
def test_end_of_a_flow_calls_the_webhook(client, thread, receiver):
    url, calls = receiver
    client.runs.wait(thread, "flow-approval", input=prompt("tea"), webhook=url)
    (asked,) = calls(1)
    client.runs.wait(thread, "flow-approval", command={"resume": "approve"}, webhook=url)
    end = calls(2)[1]
    assert (asked["status"], asked["values"]["visits"]) == ("success", {"draft": 1})
    assert end["values"]["result"].startswith("published")
    with pytest.raises(Exception, match="shaky"):
        client.runs.wait(client.threads.create()["thread_id"], "flow-failing", input=prompt(f"hook{uuid4().hex}"), webhook=url)
    failed = calls(3)[2]
    assert failed["status"] == "error" and "shaky" in failed["error"]["message"]


@root_only
def test_cron_runs_a_flow(client, thread):
    """Takes up to a minute: a schedule has no seconds."""
    cron = client.crons.create_for_thread(thread, "flow-chain", schedule="* * * * *", input=prompt("tea"))
    try:
        assert [entry["cron_id"] for entry in client.crons.search(thread_id=thread)] == [cron["cron_id"]]
        (run, *_) = eventually(lambda: client.runs.list(thread), "the run of the cron", within=90)
        assert client.runs.join(thread, run["run_id"])["result"].startswith("a polished text of tea")
    finally:
        client.crons.delete(cron["cron_id"])
