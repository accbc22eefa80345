"""client.runs.stream and client.runs.wait"""

import pytest
from langgraph_sdk.errors import BadRequestError, NotFoundError, UnprocessableEntityError

from messages import MODES, REPORT, WRITE_A_REPORT, counted, visible_messages, tokens, user, words

NOBODY = "11111111-1111-4111-8111-111111111111"


def test_run_with_tools_streams_in_all_modes(client, thread, settled):
    created = []
    parts = list(
        client.runs.stream(thread, "lead_agent", input=user(WRITE_A_REPORT), stream_mode=MODES, on_run_created=created.append)
    )
    run = created[0]["run_id"]
    assert created[0]["thread_id"] == thread
    assert parts[0].event == "metadata" and parts[0].data["run_id"] == run
    assert {"values", "messages", "updates"} <= {part.event for part in parts}
    assert "error" not in {part.event for part in parts}
    values = [part.data for part in parts if part.event == "values"][-1]
    assert [kind for kind, _ in visible_messages(values)] == ["human", "ai", "tool", "ai", "tool", "ai"]
    assert values["artifacts"] == [REPORT]
    assert settled(thread, run) == "success"
    stored = client.threads.get_state(thread)["values"]
    assert visible_messages(stored) == visible_messages(values)
    assert [message["id"] for message in stored["messages"]] == [message["id"] for message in values["messages"]]


def test_chunks_concatenate_to_the_final_messages(client, thread):
    parts = list(client.runs.stream(thread, "lead_agent", input=user(WRITE_A_REPORT), stream_mode=["values", "messages-tuple"]))
    final = {message["id"]: message for message in parts_values(parts)["messages"] if message["type"] == "ai"}
    pieces: dict[str, list] = {}
    for part in parts:
        if part.event == "messages" and part.data[0]["type"] == "AIMessageChunk":
            pieces.setdefault(part.data[0]["id"], []).append(part.data[0])
    assert pieces.keys() == final.keys()
    for id, message in final.items():
        assert "".join(map(words, pieces[id])) == words(message)
        names = [call["name"] for piece in pieces[id] for call in piece["tool_call_chunks"] if call["name"]]
        assert names == [call["name"] for call in message["tool_calls"]]


def test_only_the_requested_mode_is_streamed(client, thread):
    for mode in ["values", "updates"]:
        events = {part.event for part in client.runs.stream(thread, "lead_agent", input=user("then say x"), stream_mode=mode)}
        assert events - {"end"} == {"metadata", mode}


def test_provider_failure_is_the_last_message(client, thread, settled):
    parts = list(client.runs.stream(thread, "lead_agent", input=user("[[error 400]]"), stream_mode="values"))
    assert settled(thread, parts[0].data["run_id"]) == "error"
    assert parts_values(parts)["messages"][-1]["additional_kwargs"]["deerflow_error_fallback"] is True


def test_wait_returns_the_values(client, thread):
    assert visible_messages(client.runs.wait(thread, "lead_agent", input=user("then say x"))) == [("human", "then say x"), ("ai", "x")]


def test_run_without_thread_supports_wait_and_stream(client):
    assert visible_messages(client.runs.wait(None, "lead_agent", input=user("then say x")))[-1] == ("ai", "x")
    parts = list(client.runs.stream(None, "lead_agent", input=user("[[slow 20x1ms]]"), stream_mode="messages-tuple"))
    assert tokens(parts) == counted(20)


def test_wait_for_a_failed_run_raises(client, thread):
    looping = "[[tool:ls {}]][[tool:ls {}]] then say x"
    with pytest.raises(Exception, match="GraphRecursionError"):
        client.runs.wait(thread, "lead_agent", input=user(looping), config={"recursion_limit": 1})


def test_runs_are_read_and_listed(client, thread, settled):
    run = client.runs.create(thread, "lead_agent", input=user("then say x"), metadata={"k": 1})
    assert run["status"] == "pending"
    assert settled(thread, run["run_id"]) == "success"
    assert client.runs.get(thread, run["run_id"])["metadata"]["k"] == 1
    assert [listed["run_id"] for listed in client.runs.list(thread)] == [run["run_id"]]


def test_missing_thread_or_assistant_is_rejected(client, thread):
    with pytest.raises(NotFoundError):
        client.runs.create(NOBODY, "lead_agent", input=user("hi"))
    with pytest.raises((NotFoundError, UnprocessableEntityError)):
        client.runs.create(thread, "nobody", input=user("hi"))
    with pytest.raises(BadRequestError):
        client.runs.create(thread, "lead_agent", input=user("hi"), context={"model_name": "nobody"})
    with pytest.raises(UnprocessableEntityError):
        list(client.runs.stream(thread, "lead_agent", input=user("hi"), stream_mode="telepathy"))
    assert client.runs.list(thread) == []


def parts_values(parts) -> dict:
    return [part.data for part in parts if part.event == "values"][-1]
