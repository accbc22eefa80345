"""The official Python client and RemoteGraph, as their users call them."""
import asyncio
import socket
import threading
import time
import uuid

import pytest

from helpers import ASK, ASSISTANT, HEADERS, SKIP, SLACK, URL, call, eventually, http, start, state, talk, text, user

sdk = pytest.importorskip("langgraph_sdk")
both = pytest.mark.parametrize("transport", ["sse", pytest.param("websocket", marks=pytest.mark.cap("websocket"))])
BASH = call("bash", command="echo hi") + " then say all done"


def go(coro, seconds=25):
    return asyncio.run(asyncio.wait_for(coro, seconds * SLACK))


def opened(url=URL, **kw):
    return sdk.get_client(url=url, headers=HEADERS, api_key=None).threads.stream(assistant_id=ASSISTANT, **kw)


@both
def test_output(transport):
    async def f():
        async with opened(transport=transport) as t:
            assert (await t.run.start(input=user("then say hello")))["run_id"]
            return await t.output, t.interrupted
    v, stopped = go(f())
    assert talk(v) == [("human", "then say hello"), ("ai", "hello")] and stopped is False


@both
def test_messages_stream_token_by_token(transport):
    async def f():
        async with opened(transport=transport) as t:
            await t.run.start(input=user("[[slow 8x100ms]]"))
            out = []

            async def read(m):
                out.append([(time.time(), x) async for x in m.text])
            tasks = [asyncio.create_task(read(m)) async for m in t.messages]
            await asyncio.gather(*tasks)
            return out
    toks, = go(f())
    assert "".join(x for _, x in toks).split() == [f"tok{i}" for i in range(8)] and toks[-1][0] - toks[0][0] > 0.4


def test_values_projection():
    async def f():
        async with opened() as t:
            await t.run.start(input=user(BASH))
            return [v async for v in t.values]
    vs = go(f())
    assert [k for k, _ in talk(vs[-1])] == ["human", "ai", "tool", "ai"]


@both
def test_tool_calls(transport):
    async def f():
        async with opened(transport=transport) as t:
            await t.run.start(input=user(BASH))
            hs = [h async for h in t.tool_calls]
            return [(h.name, h.input, text(await h.output)) for h in hs]
    assert go(f()) == [("bash", {"command": "echo hi"}, "hi")]


def test_extensions():
    async def f():
        async with opened() as t:
            await t.run.start(input=user(call("emit", events=[{"a": 1}, {"name": "x", "payload": 2}]) + " then say ok"))
            return [e async for e in t.extensions["x"]]
    (got,) = go(f())
    assert got in ({"name": "x", "payload": 2}, 2)


def test_raw_events():
    async def f():
        async with opened() as t:
            await t.run.start(input=user("then say x"))
            out = []
            async for e in t.events:
                out.append(e["method"])
                if e["method"] == "lifecycle" and e["params"]["data"]["event"] == "completed":
                    return out
    ms = go(f())
    assert ms[0] == ms[-1] == "lifecycle" and {"values", "messages"} <= set(ms)


@both
def test_interrupt_and_respond(transport):
    async def f():
        async with opened(transport=transport) as t:
            await t.run.start(input=user(ASK))
            for _ in range(int(200 * SLACK)):
                if t.interrupted and t.interrupts:
                    break
                await asyncio.sleep(0.05)
            assert len(t.interrupts) == 1 and t.interrupts[0]["namespace"] == []
            await t.run.respond("red")
            return await t.output, t.interrupted, t.interrupts
    v, stopped, left = go(f())
    assert talk(v)[-2:] == [("tool", "red"), ("ai", "thx")] and not stopped and left == []


def test_an_unknown_assistant_raises_a_protocol_error():
    async def f():
        async with sdk.get_client(url=URL, headers=HEADERS, api_key=None).threads.stream(assistant_id="no-such") as t:
            await t.run.start(input=user("x"))
    with pytest.raises(RuntimeError, match="Protocol error"):
        go(f())


def test_reattach_to_a_finished_thread(tid):
    from helpers import run
    run(tid, "then say before")

    async def f():
        async with opened(thread_id=tid) as t:
            return await t.output
    assert talk(go(f()))[-1] == ("ai", "before")


def test_interleaved_projections():
    async def f():
        async with opened() as t:
            await t.run.start(input=user("then say x"))
            return [n async for n, _ in t.interleave_projections(["values", "messages"])]
    names = go(f())
    assert names[0] == names[-1] == "values" and "messages" in names


class Cutter:
    """A TCP proxy that breaks off the n-th event stream after cuts[n] frames."""

    def __init__(self, *cuts):
        self.cuts, self.made = list(cuts), 0
        host = URL.split("//")[1].split("/")[0]
        self.to = (host.rsplit(":", 1)[0], int(host.rsplit(":", 1)[1]) if ":" in host else 80)
        self.s = socket.create_server(("127.0.0.1", 0))
        self.url = URL.replace(host, f"127.0.0.1:{self.s.getsockname()[1]}", 1)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                c, _ = self.s.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(c,), daemon=True).start()

    def _serve(self, c):
        up = socket.create_connection(self.to)
        kind = {"stream": False, "left": None}

        def out():
            try:
                while b := c.recv(65536):
                    if b"/stream/events" in b[:200] and b.startswith(b"POST"):
                        kind.update(stream=True, left=self.cuts.pop(0) if self.cuts else None)
                    up.sendall(b)
            except OSError:
                pass
            finally:
                for x in (up, c):
                    try:
                        x.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass
        threading.Thread(target=out, daemon=True).start()
        try:
            while b := up.recv(65536):
                c.sendall(b)
                if kind["left"] is not None:
                    kind["left"] -= b.count(b"event: ")
                    if kind["left"] <= 0:
                        self.made += 1
                        time.sleep(0.03)
                        break
        except OSError:
            pass
        finally:
            for x in (c, up):
                try:
                    x.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                x.close()

    def close(self):
        self.s.close()


remote = pytest.mark.cap("remote_graph")


def graph():
    pytest.importorskip("langgraph")
    from langgraph.pregel.remote import RemoteGraph
    return RemoteGraph(ASSISTANT, url=URL, headers=HEADERS)


def conf():
    return {"configurable": {"thread_id": str(uuid.uuid4())}}


@remote
def test_remote_graph_async():
    async def f():
        async with await graph().astream_events(user(BASH), config=conf(), version="v3") as r:
            ms = [m async for m in r.messages]
            return ["".join([x async for x in m.text]) for m in ms], await r.output(), await r.interrupted()
    texts, v, stopped = go(f())
    assert texts == ["", "all done"] and talk(v)[-1] == ("ai", "all done") and stopped is False
