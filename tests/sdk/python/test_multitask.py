"""A second run on a busy thread."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from langgraph_sdk.errors import ConflictError

from messages import visible_messages, user


def test_reject_does_not_affect_the_first_run(client, thread, streaming_run):
    with pytest.raises(ConflictError):
        client.runs.create(thread, "lead_agent", input=user("hi"), multitask_strategy="reject")
    assert client.runs.get(thread, streaming_run)["status"] == "running"
    assert len(client.runs.list(thread)) == 1


def test_interrupt_keeps_the_partial_answer_of_the_first_run(client, thread, streaming_run):
    after = client.runs.wait(thread, "lead_agent", input=user("then say y"), multitask_strategy="interrupt")
    assert client.runs.get(thread, streaming_run)["status"] == "interrupted"
    assert visible_messages(after)[0] == ("human", "[[slow 1000x20ms]]")
    assert visible_messages(after)[-2:] == [("human", "then say y"), ("ai", "y")]


def test_rollback_removes_the_first_run(client, thread, streaming_run):
    after = client.runs.wait(thread, "lead_agent", input=user("then say y"), multitask_strategy="rollback")
    assert visible_messages(after) == [("human", "then say y"), ("ai", "y")]


def test_one_of_two_concurrent_runs_is_accepted(client, thread):
    def create(_):
        try:
            return client.runs.create(thread, "lead_agent", input=user("[[slow 1000x20ms]]"), multitask_strategy="reject")
        except ConflictError:
            return None

    with ThreadPoolExecutor(4) as pool:
        won = [run for run in pool.map(create, range(4)) if run]
    assert len(won) == 1
    assert [run["run_id"] for run in client.runs.list(thread)] == [won[0]["run_id"]]
