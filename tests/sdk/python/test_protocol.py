"""client.threads.stream() of the newest SDK, over both transports, and raw event streams."""

import asyncio
import json
import random
import threading
import uuid

import httpx
import pytest
from langgraph_sdk import get_client

from cutter import Cutter
from messages import counted, user, visible_messages
from rig import TIMEOUT, eventually

CHANNELS = ["values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "custom"]
WRITE = '[[tool:write_file {"description": "write", "path": "/mnt/user-data/outputs/a.md", "content": "x"}]] then say Done.'
both = pytest.mark.parametrize("transport", ["sse", "websocket"])


def run(work):
    return asyncio.run(asyncio.wait_for(work, TIMEOUT))


def opened(url, **options):
    return get_client(url=url, api_key=None).threads.stream(assistant_id="lead_agent", **options)


class Reader:
    """One event stream, read in a thread."""

    def __init__(self, url: str, thread: str, **selection):
        self.events: list[dict] = []
        self.client = httpx.Client(base_url=url, timeout=TIMEOUT)
        self.body = {"channels": CHANNELS} | selection
        self.opened, self.is_cut = threading.Event(), False
        self.path = f"/threads/{thread}/stream/events"
        threading.Thread(target=self._read, daemon=True).start()
        assert self.opened.wait(TIMEOUT)

    def _read(self):
        try:
            with self.client.stream("POST", self.path, json=self.body) as response:
                assert response.status_code == 200
                self.opened.set()
                for line in response.iter_lines():
                    if line.startswith("data: "):
                        self.events.append(json.loads(line[6:]))
        except (httpx.HTTPError, RuntimeError):
            pass  # Closed, or cut by a proxy.
        finally:
            self.is_cut = True
            self.opened.set()

    def root(self) -> list[str]:
        return [
            event["params"]["data"]["event"]
            for event in list(self.events)
            if event["method"] == "lifecycle" and not event["params"]["namespace"]
        ]

    def ended(self, runs: int = 1):
        ends = lambda: sum(name in ("completed", "failed", "interrupted") for name in self.root()) >= runs
        eventually(ends, f"the end of {runs} runs")
        return self.events

    def close(self):
        self.client.close()


def command(url: str, thread: str, method: str, **params) -> dict:
    body = {"id": 1, "method": method, "params": params}
    return httpx.post(f"{url}/threads/{thread}/commands", json=body, timeout=TIMEOUT).json()


def start(url: str, thread: str, text: str) -> str:
    answer = command(url, thread, "run.start", assistant_id="lead_agent", input=user(text))
    assert answer["type"] == "success", answer
    return answer["result"]["run_id"]


def text_of(events: list[dict]) -> dict[str, str]:
    """Joins the text of the answers, by the ids of their messages."""
    texts, current = {}, {}
    for event in events:
        if event["method"] != "messages":
            continue
        place, data = tuple(event["params"]["namespace"]), event["params"]["data"]
        if data["event"] == "message-start":
            current[place] = data["id"]
            texts[data["id"]] = ""
        elif data["event"] == "content-block-delta" and data["delta"]["type"] == "text-delta":
            texts[current[place]] += data["delta"]["text"]
    return texts


@pytest.fixture
def url(gateway, prefix):
    return gateway.url + prefix


@pytest.fixture
def new_thread():
    return str(uuid.uuid4())


@both
def test_output_is_the_final_state(url, transport):
    async def work():
        async with opened(url, transport=transport) as thread:
            await thread.run.start(input=user("then say hello"))
            return await thread.output

    assert visible_messages(run(work())) == [("human", "then say hello"), ("ai", "hello")]


@both
def test_messages_arrive_while_the_model_answers(url, transport):
    async def pieces(message):
        loop = asyncio.get_running_loop()
        return [(loop.time(), piece) async for piece in message.text]

    async def work():
        async with opened(url, transport=transport) as thread:
            await thread.run.start(input=user("[[slow 20x30ms]]"))
            readers = [asyncio.create_task(pieces(message)) async for message in thread.messages]
            (read,) = await asyncio.gather(*readers)
        return "".join(piece for _, piece in read), read[-1][0] - read[0][0]

    text, duration = run(work())
    assert text == counted(20)
    assert duration > 0.2


@both
def test_tool_calls_have_input_and_output(url, transport):
    async def work():
        async with opened(url, transport=transport) as thread:
            await thread.run.start(input=user(WRITE))
            calls = [call async for call in thread.tool_calls]
            return [(call.name, call.input["path"], await call.output) for call in calls]

    ((name, path, output),) = run(work())
    assert (name, path) == ("write_file", "/mnt/user-data/outputs/a.md")
    assert output


def test_run_is_listed_and_cancellable(url, client, new_thread):
    reader = Reader(url, new_thread)
    run_id = start(url, new_thread, "[[slow 1000x20ms]]")
    eventually(lambda: any(event["method"] == "messages" for event in reader.events), "the answer")
    assert [run["run_id"] for run in client.runs.list(new_thread)] == [run_id]
    client.runs.cancel(new_thread, run_id, wait=True)
    reader.ended()
    assert reader.root() == ["running", "interrupted"]


def test_reconnects_at_random_places_lose_and_repeat_nothing(gateway, new_thread):
    """A client that is cut again and again reads the same log as one that is not."""
    whole = Reader(gateway.url, new_thread)
    random_places = random.Random(7)
    cuts = [random_places.randint(1, 12) for _ in range(60)]
    with Cutter(gateway.port, cuts) as proxy:
        start(gateway.url, new_thread, "[[slow 150x10ms]]")
        start(gateway.url, new_thread, WRITE)
        seen = []
        while not over(seen):
            part = Reader(proxy.url, new_thread, since=seen[-1]["seq"] if seen else 0)
            eventually(lambda: part.is_cut or over(seen + part.events), "a cut or the end")
            part.close()
            seen += part.events
    expected = whole.ended(2)
    assert [event["event_id"] for event in seen] == [event["event_id"] for event in expected]
    assert [event["seq"] for event in seen] == list(range(1, len(expected) + 1))
    assert counted(150) in text_of(seen).values()


def over(events: list[dict]) -> bool:
    return sum(is_end(event) for event in events) >= 2


def is_end(event: dict) -> bool:
    return (
        event["method"] == "lifecycle"
        and not event["params"]["namespace"]
        and event["params"]["data"]["event"] in ("completed", "failed", "interrupted")
    )
