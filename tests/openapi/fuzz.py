"""Starts a gateway with a scripted model, creates one object of each kind in it, and tests it with Schemathesis."""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "sdk" / "python"))
from rig import Gateway, ScriptedModel  # noqa: E402

CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
]
EXAMPLES = os.environ.get("EXAMPLES", "40")
PHASES = os.environ.get("PHASES", "fuzzing")
WORKERS = os.environ.get("WORKERS", "2")
SEED = os.environ.get("SEED", "1")
TIMEOUT_SECONDS = 30
# Documents with the options that select their operations. DeerFlow's alias has the same handlers. Not requested: routes that sign in,
# start programs or tell that a feature does not exist (501).
DOCUMENTS = {
    "/openapi.json": [],
    "/api/openapi.json": ["--include-path-regex", "^/api/(?!langgraph/|v1/auth/|mcp/|integrations/|channels/.+/restart)"],
}


def ask(url: str, method: str, path: str, body=None):
    """Returns the JSON of the response, if it has any."""
    data = None if body is None else json.dumps(body).encode()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url + path, data, method=method), timeout=TIMEOUT_SECONDS) as answer:
        text = answer.read()
    return json.loads(text) if text.strip() else None


def create_objects(url: str) -> dict:
    """Creates one object of each kind and returns the ids by parameter name."""
    said = {"messages": [{"role": "user", "content": "hello"}]}
    run = {"assistant_id": "lead_agent", "input": said}
    ids = {"thread_id": [], "runs": [], "checkpoint_id": []}
    for _ in range(4):
        thread = ask(url, "POST", "/threads", {"metadata": {"kind": "fuzz"}})["thread_id"]
        ask(url, "POST", f"/threads/{thread}/runs/wait", run)
        ids["thread_id"].append(thread)
        ids["runs"].append((thread, ask(url, "GET", f"/threads/{thread}/runs")[0]["run_id"]))
        ids["checkpoint_id"].append(ask(url, "GET", f"/threads/{thread}/state")["checkpoint_id"])
    assistants = [ask(url, "POST", "/assistants", {"graph_id": "lead_agent"}) for _ in range(2)]
    ids["assistant_id"] = [made["assistant_id"] for made in assistants] + ["lead_agent"]
    crons = [ask(url, "POST", "/runs/crons", {"assistant_id": "lead_agent", "schedule": "0 0 1 1 *", "input": said})]
    ids["cron_id"] = [made["cron_id"] for made in crons]
    for key in ("a", "b"):
        ask(url, "PUT", "/store/items", {"namespace": ["n", "m"], "key": key, "value": {"text": "x"}})
    return ids


def fuzz(url: str, document: str, ids: dict, folder: Path, more: list[str]) -> int:
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{url}{document}", *DOCUMENTS[document]),
        *("--checks", ",".join(CHECKS), "--phases", PHASES),
        *("--max-examples", EXAMPLES, "--workers", WORKERS, "--seed", SEED, "--request-timeout", str(TIMEOUT_SECONDS)),
        *("--continue-on-failure", "--no-shrink", "--suppress-health-check", "all", "--warnings", "off"),
        *more,
    ]
    environment = os.environ | {
        "SCHEMATHESIS_HOOKS": "hooks",
        "PYTHONPATH": str(Path(__file__).parent),
        "FUZZ_IDS": json.dumps(ids),
        "FUZZ_SEED": SEED,
        "NO_PROXY": "127.0.0.1",
    }
    return subprocess.run(command, cwd=folder, env=environment).returncode


def main() -> int:
    with tempfile.TemporaryDirectory() as home, ScriptedModel() as model, Gateway(Path(home), model.base_url) as gateway:
        since = time.monotonic()
        failed = 0
        for document in DOCUMENTS:
            failed |= fuzz(gateway.url, document, create_objects(gateway.url), Path(home), sys.argv[1:])
            print(f"{document}: {time.monotonic() - since:.0f} s")
        alive = ask(gateway.url, "GET", "/ok?check_db=true")
        if failed or alive.get("ok") is not True:
            print(f"/ok?check_db=true: {alive}")
            lines = gateway.log.read_text(errors="replace").splitlines()
            print("\n".join(line for line in lines if "ERROR" in line or "panic" in line)[-8_000:])
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
