"""Joining a run: client.runs.join, join_stream and the client's own reconnect."""

import os
import random
from concurrent.futures import ThreadPoolExecutor

from langgraph_sdk import get_sync_client

from cutter import Cutter
from messages import counted, visible_messages, tokens, user


def events(parts) -> list[tuple]:
    """Returns the sent events; the final `end` has no id, so the client repeats the last one."""
    return [(part.id, part.event, part.data) for part in parts if part.event != "end"]


def test_reconnected_viewer_has_no_gap_or_repetition(client, thread, settled, resumable):
    modes = ["values", "messages-tuple"]
    run = client.runs.create(thread, "lead_agent", input=user("[[slow 60x15ms]]"), stream_mode=modes, **resumable)["run_id"]
    seen = []
    for part in client.runs.join_stream(thread, run, last_event_id="-1"):
        seen.append(part)
        if len(seen) == 12:
            break
    rest = list(client.runs.join_stream(thread, run, last_event_id=seen[-1].id))
    whole = list(client.runs.join_stream(thread, run, last_event_id="-1"))
    assert events(seen + rest) == events(whole)
    ids = [id for id, _, _ in events(whole)]
    assert all(ids) and len(set(ids)) == len(ids)
    assert tokens(whole) == counted(60)
    assert settled(thread, run) == "success"


def test_client_resumes_a_broken_stream(gateway, prefix, resumable):
    with Cutter(gateway.port, cuts=[6, 5]) as cutter:
        client = get_sync_client(url=cutter.url + prefix, api_key=None)
        thread = client.threads.create()["thread_id"]
        created = []
        parts = list(
            client.runs.stream(
                thread,
                "lead_agent",
                input=user("[[slow 40x50ms]]"),
                stream_mode="messages-tuple",
                on_disconnect="continue",
                on_run_created=created.append,
                **resumable,
            )
        )
        assert tokens(parts) == counted(40)
        # The number of cuts depends on how many events arrive at once: a replay may be complete before the second cut.
        first, *again = [method for method, _ in cutter.streams()]
        assert first == "POST" and again and set(again) == {"GET"}
        assert all(cursor for _, cursor in cutter.streams()[1:])
        assert len(created) == 1
        assert [run["status"] for run in client.runs.list(thread)] == ["success"]


def test_randomly_broken_streams_arrive_completely(gateway, prefix, resumable):
    """STREAMS is the number of streams (20), SEED determines the cuts."""
    streams, dice = int(os.environ.get("STREAMS", 20)), random.Random(os.environ.get("SEED", "1"))
    places = [[dice.randrange(1, 30) for _ in range(dice.randrange(1, 4))] for _ in range(streams)]

    def stream_with_cuts(cuts: list[int]):
        with Cutter(gateway.port, cuts) as cutter:
            client = get_sync_client(url=cutter.url + prefix, api_key=None)
            thread = client.threads.create()["thread_id"]
            asked = {"input": user("[[slow 40x10ms]]"), "stream_mode": ["values", "messages-tuple"], "on_disconnect": "continue"}
            parts = list(client.runs.stream(thread, "lead_agent", **asked, **resumable))
            return tokens(parts), len(cutter.streams()) - 1, [run["status"] for run in client.runs.list(thread)]

    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(stream_with_cuts, places))
    assert [(text, ends) for text, _, ends in results] == [(counted(40), ["success"])] * streams
    cuts = sum(cuts for _, cuts, _ in results)
    print(f"{streams} streams whole, cut {cuts} times")
    assert cuts >= streams // 2


def test_join_returns_the_final_values(client, thread):
    run = client.runs.create(thread, "lead_agent", input=user("[[slow 20x10ms]]"))["run_id"]
    assert visible_messages(client.runs.join(thread, run))[-1] == ("ai", counted(20))
    assert visible_messages(client.runs.join(thread, run))[-1] == ("ai", counted(20)), "again, of a finished run"


def test_finished_run_is_replayed(client, thread, resumable):
    modes = ["values", "messages-tuple"]
    streamed = list(client.runs.stream(thread, "lead_agent", input=user("then say x"), stream_mode=modes, **resumable))
    run = streamed[0].data["run_id"]
    assert events(client.runs.join_stream(thread, run, last_event_id="-1")) == events(streamed)
    last = [part.id for part in streamed if part.id][-1]
    assert [part.event for part in client.runs.join_stream(thread, run, last_event_id=last)] in ([], ["end"])
