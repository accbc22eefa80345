"""client.threads"""

import pytest
from langgraph_sdk.errors import NotFoundError, UnprocessableEntityError

from messages import visible_messages, user

NOBODY = "11111111-1111-4111-8111-111111111111"


def test_a_thread_is_created_read_changed_and_deleted(client):
    created = client.threads.create(metadata={"a": 1})
    thread = created["thread_id"]
    assert (created["status"], created["metadata"]["a"]) == ("idle", 1)
    assert client.threads.get(thread)["thread_id"] == thread
    assert client.threads.update(thread, metadata={"b": 2})["metadata"].items() >= {"a": 1, "b": 2}.items()
    client.threads.delete(thread)
    with pytest.raises(NotFoundError):
        client.threads.get(thread)


def test_repeated_create_returns_the_thread(client):
    thread = client.threads.create(metadata={"a": 1})["thread_id"]
    again = client.threads.create(thread_id=thread, if_exists="do_nothing", metadata={"a": 2})
    assert (again["thread_id"], again["metadata"]["a"]) == (thread, 1)


def test_threads_are_found_by_metadata_newest_first(client, thread):
    made = [client.threads.create(metadata={"mark": thread, "n": n})["thread_id"] for n in range(3)]
    found = lambda **query: [found["thread_id"] for found in client.threads.search(metadata={"mark": thread}, **query)]
    assert found() == made[::-1]
    assert found(limit=1, offset=1) == [made[1]]
    assert [found["thread_id"] for found in client.threads.search(metadata={"mark": thread, "n": 0})] == [made[0]]


def test_the_state_is_read_edited_and_forked(client, thread):
    client.runs.wait(thread, "lead_agent", input=user("then say x"))
    state = client.threads.get_state(thread)
    assert visible_messages(state["values"]) == [("human", "then say x"), ("ai", "x")]
    assert state["next"] == []
    client.threads.update_state(thread, {"title": "A new name"})
    renamed = client.threads.get_state(thread)
    assert renamed["values"]["title"] == "A new name"
    assert renamed["values"]["messages"] == state["values"]["messages"]
    checkpoint = state["checkpoint"].get("checkpoint_id") or state["checkpoint"]["id"]
    client.threads.update_state(thread, {"title": "Forked"}, checkpoint_id=checkpoint)
    assert client.threads.get_state(thread)["values"]["title"] == "Forked"


def test_history_reaches_the_first_checkpoint(client, thread):
    for answer in ["one", "two"]:
        client.runs.wait(thread, "lead_agent", input=user(f"then say {answer}"))
    history = client.threads.get_history(thread, limit=50)
    assert visible_messages(history[0]["values"])[-1] == ("ai", "two")
    assert len(history) >= 4
    assert [entry["created_at"] for entry in history] == sorted((entry["created_at"] for entry in history), reverse=True)
    assert len(client.threads.get_history(thread, limit=2)) == 2


def test_unknown_and_invalid_threads_are_typed_errors(client):
    with pytest.raises(NotFoundError):
        client.threads.get(NOBODY)
    with pytest.raises(NotFoundError):
        client.threads.update_state(NOBODY, {"title": "x"})
    with pytest.raises(UnprocessableEntityError):
        client.threads.create(thread_id="a b")
    with pytest.raises(UnprocessableEntityError):
        client.threads.search(limit=-1)
