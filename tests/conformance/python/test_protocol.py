"""Questions of runs that `client.threads.stream()` starts, through this API and the classic one."""
import asyncio
import json
import threading

import httpx
import pytest
from langgraph_sdk import get_client

from helpers import ASSISTANT, BASE, HEADERS, PREFIX, SLACK, eventually, new_id, tool_call, user, visible_pairs

URL = BASE + PREFIX
ASK = tool_call("ask_clarification", {"question": "which?"}) + " then say thx"
ASK_TWICE = f"[[tools:{json.dumps([{'name': 'ask_clarification', 'args': {'question': word}} for word in 'ab'])}]] then say both"


def command(thread: str, method: str, **params) -> dict:
    body = {"id": 1, "method": method, "params": params}
    answer = httpx.post(f"{URL}/threads/{thread}/commands", json=body, headers=HEADERS, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()


def state(thread: str) -> dict:
    return httpx.get(f"{URL}/threads/{thread}/state", headers=HEADERS).json()


class Reader:
    """One event stream, read in a thread."""

    def __init__(self, thread: str, **selection):
        self.events, self.opened = [], threading.Event()
        self.body = {"channels": ["values", "lifecycle", "input"]} | selection
        self.path = f"{URL}/threads/{thread}/stream/events"
        threading.Thread(target=self._read, daemon=True).start()
        assert self.opened.wait(30 * SLACK)

    def _read(self):
        with httpx.stream("POST", self.path, json=self.body, headers=HEADERS, timeout=None) as response:
            self.opened.set()
            for line in response.iter_lines():
                if line.startswith("data: "):
                    self.events.append(json.loads(line[6:]))

    def root(self) -> list:
        events = [event for event in list(self.events) if event["method"] == "lifecycle"]
        return [event["params"]["data"]["event"] for event in events if not event["params"]["namespace"]]

    def questions(self) -> list:
        return [event["params"]["data"] for event in list(self.events) if event["method"] == "input.requested"]


@pytest.fixture
def asked():
    """A thread whose run has asked, and a reader of it."""
    thread = new_id()
    reader = Reader(thread)
    assert command(thread, "run.start", assistant_id=ASSISTANT, input=user(ASK))["type"] == "success"
    eventually(lambda: reader.root() == ["running", "interrupted"])
    return thread, reader


@pytest.mark.parametrize("transport", ["sse", "websocket"])
def test_question_is_answered_by_the_client(transport):
    async def work():
        stream = get_client(url=URL, api_key=None, headers=HEADERS).threads.stream(assistant_id=ASSISTANT, transport=transport)
        async with stream as thread:
            await thread.run.start(input=user(ASK))
            while not (thread.interrupted and thread.interrupts):
                await asyncio.sleep(0.02)
            await thread.run.respond("blue")
            return await thread.output

    values = asyncio.run(asyncio.wait_for(work(), 30 * SLACK))
    assert visible_pairs(values)[-2:] == [("tool", "blue"), ("ai", "thx")]


def test_question_is_answered_through_the_classic_api(asked):
    thread, reader = asked
    body = {"assistant_id": ASSISTANT, "command": {"resume": "blue"}}
    values = httpx.post(f"{URL}/threads/{thread}/runs/wait", json=body, headers=HEADERS, timeout=30).json()
    assert visible_pairs(values)[-2:] == [("tool", "blue"), ("ai", "thx")]
    eventually(lambda: reader.root() == ["running", "interrupted", "running", "completed"])


def test_question_of_the_classic_api_is_announced_and_answered():
    thread = new_id()
    body = {"assistant_id": ASSISTANT, "input": user(ASK), "if_not_exists": "create"}
    httpx.post(f"{URL}/threads/{thread}/runs/wait", json=body, headers=HEADERS, timeout=30)
    reader = Reader(thread)
    eventually(reader.questions)
    question = reader.questions()[0]["interrupt_id"]
    assert command(thread, "input.respond", interrupt_id=question, response="red")["type"] == "success"
    eventually(lambda: reader.root()[-1:] == ["completed"])
    assert visible_pairs(state(thread)["values"])[-2:] == [("tool", "red"), ("ai", "thx")]


def test_second_answer_to_a_question_is_refused(asked):
    thread, reader = asked
    question = reader.questions()[0]["interrupt_id"]
    answers = [command(thread, "input.respond", interrupt_id=question, response=word) for word in ("one", "two")]
    assert answers[0]["type"] == "success"
    assert answers[1]["type"] == "error"
    eventually(lambda: reader.root()[-1:] == ["completed"])
    assert reader.root().count("running") == 2


def test_batch_with_an_unknown_question_starts_nothing():
    thread = new_id()
    reader = Reader(thread)
    command(thread, "run.start", assistant_id=ASSISTANT, input=user(ASK_TWICE))
    eventually(lambda: reader.root() == ["running", "interrupted"])
    known = [question["interrupt_id"] for question in reader.questions()]
    answers = [{"interrupt_id": known[0], "response": "a"}, {"interrupt_id": "unknown", "response": "b"}]
    assert command(thread, "input.respond", responses=answers)["error"] == "no_such_interrupt"
    assert [len(task["interrupts"]) for task in state(thread)["tasks"]] == [1, 1]
    both = [{"interrupt_id": question, "response": "x"} for question in known]
    assert command(thread, "input.respond", responses=both)["type"] == "success"
    eventually(lambda: reader.root() == ["running", "interrupted", "running", "completed"])


def test_repetition_without_input_asks_again_with_the_same_id(asked):
    thread, reader = asked
    assert command(thread, "run.start", assistant_id=ASSISTANT, input=None)["type"] == "success"
    eventually(lambda: reader.root() == ["running", "interrupted"] * 2)
    assert len({question["interrupt_id"] for question in reader.questions()}) == 1
