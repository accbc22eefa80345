"""client.runs.cancel"""

import pytest
from langgraph_sdk.errors import APIStatusError, NotFoundError

from talk import talk, user


def test_cancelling_without_waiting_comes_true(client, thread, talking, settled):
    client.runs.cancel(thread, talking, wait=False)
    assert settled(thread, talking) == "interrupted"


def test_cancelling_with_waiting_is_true_at_once(client, thread, talking):
    client.runs.cancel(thread, talking, wait=True)
    assert client.runs.get(thread, talking)["status"] == "interrupted"


def test_an_interrupted_answer_keeps_its_text_where_the_web_ui_looks_for_it(client, thread, talking, prefix):
    client.runs.cancel(thread, talking, wait=True)
    said, *answers = talk(client.threads.get_state(thread)["values"])
    assert said == ("human", "[[slow 1000x20ms]]")
    if prefix:
        ((answerer, answer),) = answers
        assert answerer == "ai" and answer.startswith("tok0 tok1 tok2 tok3 ")
    else:
        # As on the platform, the interrupted step writes nothing to the state.
        assert answers == []
    after = client.runs.wait(thread, "lead_agent", input=user("then say on"))
    assert talk(after)[-1] == ("ai", "on")


def test_a_rollback_leaves_nothing_behind(client, thread, settled):
    client.runs.wait(thread, "lead_agent", input=user("then say x"))
    run = client.runs.create(thread, "lead_agent", input=user("[[slow 1000x20ms]]"))["run_id"]
    client.runs.cancel(thread, run, wait=True, action="rollback")
    assert talk(client.threads.get_state(thread)["values"]) == [("human", "then say x"), ("ai", "x")]
    assert client.threads.get(thread)["status"] == "idle"


def test_a_finished_or_unknown_run_cannot_be_cancelled(client, thread, settled):
    run = client.runs.create(thread, "lead_agent", input=user("then say x"))["run_id"]
    assert settled(thread, run) == "success"
    with pytest.raises(APIStatusError) as refused:
        client.runs.cancel(thread, run)
    assert refused.value.response.status_code in (404, 409)
    assert client.runs.get(thread, run)["status"] == "success"
    with pytest.raises(NotFoundError):
        client.runs.cancel(thread, "11111111-1111-4111-8111-111111111111")
