"""client.runs.cancel"""

import pytest
from langgraph_sdk.errors import APIStatusError, NotFoundError

from messages import visible_messages, user


def test_cancel_without_wait_is_applied(client, thread, streaming_run, settled):
    client.runs.cancel(thread, streaming_run, wait=False)
    assert settled(thread, streaming_run) == "interrupted"


def test_cancel_with_wait_returns_after_the_end(client, thread, streaming_run):
    client.runs.cancel(thread, streaming_run, wait=True)
    assert client.runs.get(thread, streaming_run)["status"] == "interrupted"


def test_interrupted_answer_is_in_the_state_of_deerflow_only(client, thread, streaming_run, prefix):
    client.runs.cancel(thread, streaming_run, wait=True)
    said, *answers = visible_messages(client.threads.get_state(thread)["values"])
    assert said == ("human", "[[slow 1000x20ms]]")
    if prefix:
        ((answerer, answer),) = answers
        assert answerer == "ai" and answer.startswith("tok0 tok1 tok2 tok3 ")
    else:
        # As on the platform, the interrupted step writes nothing to the state.
        assert answers == []
    after = client.runs.wait(thread, "lead_agent", input=user("then say on"))
    assert visible_messages(after)[-1] == ("ai", "on")


def test_rollback_restores_the_previous_state(client, thread, settled):
    client.runs.wait(thread, "lead_agent", input=user("then say x"))
    run = client.runs.create(thread, "lead_agent", input=user("[[slow 1000x20ms]]"))["run_id"]
    client.runs.cancel(thread, run, wait=True, action="rollback")
    assert visible_messages(client.threads.get_state(thread)["values"]) == [("human", "then say x"), ("ai", "x")]
    assert client.threads.get(thread)["status"] == "idle"


def test_finished_or_unknown_run_cannot_be_cancelled(client, thread, settled):
    run = client.runs.create(thread, "lead_agent", input=user("then say x"))["run_id"]
    assert settled(thread, run) == "success"
    with pytest.raises(APIStatusError) as refused:
        client.runs.cancel(thread, run)
    assert refused.value.response.status_code in (404, 409)
    assert client.runs.get(thread, run)["status"] == "success"
    with pytest.raises(NotFoundError):
        client.runs.cancel(thread, "11111111-1111-4111-8111-111111111111")
