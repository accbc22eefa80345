"""Hooks of Schemathesis: use existing ids, and avoid requests that take long by design."""

import ast
import atexit
import json
import os
import random
import threading
from collections import Counter

import schemathesis

IDS = json.loads(os.environ["FUZZ_IDS"])
DICE = random.Random(os.environ["FUZZ_SEED"])
RUNS = [tuple(pair) for pair in IDS.pop("runs")]
STATUSES = Counter()
# Never ends while the thread exists, so it is only requested for missing threads.
ENDLESS = "join_thread_stream"
NOWHERE = "11111111-1111-4111-8111-111111111111"
MAKERS = {
    "create_thread": "thread_id",
    "copy_thread": "thread_id",
    "create_cron": "cron_id",
    "create_assistant": "assistant_id",
    "create_run": "run_id",
}
LONGEST_DELAY = 10 * 366 * 24 * 60 * 60
# Share of ids that are replaced by existing ones.
HIT = 0.75

# Hypothesis parses source code at run time, and before CPython 3.11.8 two threads that parse concurrently share a depth counter:
# "AST constructor recursion depth mismatch".
PARSE, ONE_AT_A_TIME = ast.parse, threading.RLock()


def parse(*args, **kwargs):
    with ONE_AT_A_TIME:
        return PARSE(*args, **kwargs)


ast.parse = parse

# An archive is sent as the bytes that were generated.
schemathesis.serializer.alias("application/zip", "application/octet-stream")


def existing_or(name: str, value):
    return DICE.choice(IDS[name]) if name in IDS and DICE.random() < HIT else value


@schemathesis.hook
def before_call(context, case, kwargs):
    operation = context.operation.definition.raw.get("operationId")
    if operation == ENDLESS:
        # Schemathesis itself requests ids that it received in responses.
        case.path_parameters["thread_id"] = DICE.choice(["x", NOWHERE])
    elif isinstance(case.path_parameters, dict):
        insert_path_ids(case.path_parameters)
    body = case.body
    for part in body if isinstance(body, list) else [body]:
        if isinstance(part, dict):
            insert_body_ids(part)


def insert_path_ids(ids: dict):
    """Inserts existing ids; a run mostly with its own thread."""
    for name, value in list(ids.items()):
        ids[name] = existing_or(name, value)
    if "run_id" in ids and RUNS and DICE.random() < HIT:
        ids["thread_id"], ids["run_id"] = DICE.choice(RUNS)


def insert_body_ids(body: dict):
    """Inserts existing ids, and removes delays."""
    for name in ("thread_id", "checkpoint_id"):
        # A thread id in a body creates a thread or filters by it; a new id is useful as often.
        if isinstance(body.get(name), str) and DICE.random() < 0.5:
            body[name] = existing_or(name, body[name])
    if isinstance(body.get("assistant_id"), str):
        body["assistant_id"] = "lead_agent" if DICE.random() < HIT else body["assistant_id"]
    if isinstance(body.get("graph_id"), str):
        body["graph_id"] = "lead_agent" if DICE.random() < HIT else body["graph_id"]
    if isinstance(body.get("schedule"), str) and DICE.random() < HIT:
        body["schedule"] = "0 0 1 1 *"
    # Each of these is rejected in combination with another present option, or nearly always.
    for name in ("context", "webhook", "checkpoint", "checkpoint_id", "command"):
        if name in body and DICE.random() < HIT:
            del body[name]
    # A delayed run blocks all others on its thread.
    if isinstance(delay := body.get("after_seconds"), (int, float)) and 0 < delay <= LONGEST_DELAY:
        body["after_seconds"] = 0.01


@schemathesis.hook
def after_call(context, case, response):
    STATUSES[response.status_code] += 1
    operation = context.operation.definition.raw.get("operationId")
    # Created objects are added to the ids, because other requests delete them.
    if operation not in MAKERS or response.status_code != 200:
        return
    made = response.json()
    if operation == "create_run":
        RUNS[:] = [(made["thread_id"], made["run_id"]), *RUNS][:8]
    else:
        name = MAKERS[operation]
        IDS[name] = [made[name], *IDS[name]][:8]


@atexit.register
def print_statuses():
    if STATUSES:
        print(f"{sum(STATUSES.values())} requests:", ", ".join(f"{count} x {status}" for status, count in sorted(STATUSES.items())))
