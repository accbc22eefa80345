"""A second run on a busy thread."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from langgraph_sdk.errors import ConflictError

from talk import talk, user


def test_reject_leaves_the_first_alone(client, thread, talking):
    with pytest.raises(ConflictError):
        client.runs.create(thread, "lead_agent", input=user("hi"), multitask_strategy="reject")
    assert client.runs.get(thread, talking)["status"] == "running"
    assert len(client.runs.list(thread)) == 1


def test_interrupt_goes_on_from_what_the_first_said(client, thread, talking):
    after = client.runs.wait(thread, "lead_agent", input=user("then say y"), multitask_strategy="interrupt")
    assert client.runs.get(thread, talking)["status"] == "interrupted"
    assert talk(after)[0] == ("human", "[[slow 1000x20ms]]")
    assert talk(after)[-2:] == [("human", "then say y"), ("ai", "y")]


def test_rollback_forgets_the_first(client, thread, talking):
    after = client.runs.wait(thread, "lead_agent", input=user("then say y"), multitask_strategy="rollback")
    assert talk(after) == [("human", "then say y"), ("ai", "y")]


def test_of_two_at_the_same_time_one_wins(client, thread):
    def create(_):
        try:
            return client.runs.create(thread, "lead_agent", input=user("[[slow 1000x20ms]]"), multitask_strategy="reject")
        except ConflictError:
            return None

    with ThreadPoolExecutor(4) as pool:
        won = [run for run in pool.map(create, range(4)) if run]
    assert len(won) == 1
    assert [run["run_id"] for run in client.runs.list(thread)] == [won[0]["run_id"]]
