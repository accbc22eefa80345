"""Questions, breakpoints, forks, state updates and repeated nodes of flows."""

import pytest
from langgraph_sdk.errors import ConflictError

from flows import checkpoint_before, checkpoint_id, data_of, flow_events, interrupt_of, prompt, updated_nodes
from messages import visible_messages

root_only = pytest.mark.parametrize("prefix", [""], ids=["root"], indirect=True)


@pytest.fixture
def asked(client, thread):
    """Runs the flow up to its question and returns the question."""
    return interrupt_of(client.runs.wait(thread, "flow-approval", input=prompt("tea")))


def resume(client, thread, answer, **options):
    return client.runs.wait(thread, "flow-approval", command={"resume": answer}, **options)


def test_question_interrupts_the_thread(client, thread, asked):
    assert asked["value"] == {
        "type": "flow_human",
        "nodeId": "gate",
        "prompt": "Publish it?",
        "options": ["approve", "reject"],
        "context": "drafted tea",
    }
    state = client.threads.get_state(thread)
    assert (state["next"], [task["name"] for task in state["tasks"]]) == (["gate"], ["gate"])
    assert state["tasks"][0]["interrupts"][0]["id"] == asked["id"]
    assert client.threads.get(thread)["status"] == "interrupted"
    assert [run["status"] for run in client.runs.list(thread)] == ["success"]


def test_answer_continues_behind_the_question(client, thread, asked):
    values = resume(client, thread, "reject")
    assert values["visits"] == {"draft": 1, "gate": 1, "discard": 1, "finish": 1}
    assert values["result"].startswith("discarded")
    assert [kind for kind, _ in visible_messages(values)] == ["human", "ai"]
    assert client.threads.get(thread)["status"] == "idle"


def test_other_answer_is_asked_again(client, thread, asked):
    again = interrupt_of(resume(client, thread, "perhaps"))
    assert again["value"]["options"] == ["approve", "reject"]
    assert resume(client, thread, "approve")["result"].startswith("published")


def test_answer_may_name_its_question(client, thread, asked):
    assert resume(client, thread, {asked["id"]: "approve"})["visits"]["publish"] == 1


def test_answer_may_name_its_node(client, thread, asked):
    assert resume(client, thread, {"gate": "approve"})["visits"]["publish"] == 1


def test_answered_question_does_not_return(client, thread, asked):
    parts = list(client.runs.stream(thread, "flow-approval", command={"resume": "approve"}, stream_mode=["updates", "custom"]))
    assert updated_nodes(parts) == ["gate", "publish", "finish"]
    events = flow_events(parts)
    assert (events[0], events[-1]) == (("run_resumed", "gate"), ("run_completed", None))
    assert client.threads.get_state(thread)["tasks"] == []


def test_updates_end_with_the_interrupt(client, thread):
    parts = list(client.runs.stream(thread, "flow-approval", input=prompt("tea"), stream_mode=["updates", "custom"]))
    assert interrupt_of(data_of(parts, "updates")[-1])["value"]["nodeId"] == "gate"
    assert flow_events(parts)[-1] == ("run_interrupted", "gate")


def test_earlier_checkpoint_forks_the_thread(client, thread, asked):
    resume(client, thread, "reject")
    waiting = checkpoint_before(client, thread, "gate")
    forked = client.runs.wait(thread, "flow-approval", command={"resume": "approve"}, checkpoint_id=checkpoint_id(waiting))
    assert forked["visits"] == {"draft": 1, "gate": 1, "publish": 1, "finish": 1}
    assert [kind for kind, _ in visible_messages(forked)] == ["human", "ai"]


def test_checkpoint_without_input_runs_its_nodes(client, thread):
    client.runs.wait(thread, "flow-chain", input=prompt("tea"))
    before = checkpoint_before(client, thread, "polish")
    parts = list(client.runs.stream(thread, "flow-chain", input=None, checkpoint_id=checkpoint_id(before), stream_mode=["updates", "values"]))
    assert updated_nodes(parts) == ["polish", "finish"]
    assert data_of(parts, "values")[-1]["visits"] == {"draft": 1, "polish": 1, "finish": 1}


@pytest.mark.parametrize("where, next_node", [({"interrupt_before": ["polish"]}, "polish"), ({"interrupt_after": ["draft"]}, "polish")], ids=["before", "after"])
def test_breakpoint_stops_at_its_node(client, thread, where, next_node):
    client.runs.wait(thread, "flow-chain", input=prompt("tea"), **where)
    state = client.threads.get_state(thread)
    assert (state["next"], state["values"]["visits"]) == ([next_node], {"draft": 1})
    assert client.threads.get(thread)["status"] == "interrupted"
    values = client.runs.wait(thread, "flow-chain", input=None)
    assert values["visits"] == {"draft": 1, "polish": 1, "finish": 1}


@root_only
def test_goto_runs_one_node_and_those_behind_it(client, thread):
    client.runs.wait(thread, "flow-chain", input=prompt("tea"))
    parts = list(client.runs.stream(thread, "flow-chain", command={"goto": "polish"}, stream_mode=["updates", "values"]))
    assert updated_nodes(parts) == ["polish", "finish"]
    assert data_of(parts, "values")[-1]["visits"] == {"draft": 1, "polish": 2, "finish": 2}


def test_failed_node_runs_again_without_those_before_it(client, model, thread):
    words = f"mark{thread.replace('-', '')}"
    with pytest.raises(Exception, match="shaky"):
        client.runs.wait(thread, "flow-failing", input=prompt(words))
    state = client.threads.get_state(thread)
    assert state["next"] == ["shaky"] and state["tasks"][0]["error"]
    assert client.threads.get(thread)["status"] == "error"
    calls = lambda: (model.calls(words, "then say steady"), model.calls(words, "[[error 400"))
    assert calls() == (1, 1)
    values = client.runs.wait(thread, "flow-failing", input=None)
    assert (values["visits"]["steady"], values["visits"]["finish"]) == (1, 1)
    assert calls() == (1, 2)
    assert [run["status"] for run in client.runs.list(thread)] == ["success", "error"]
    assert [kind for kind, _ in visible_messages(values)] == ["human", "ai"]


def test_update_as_node_writes_its_ports_and_follows_its_edges(client, thread):
    client.runs.wait(thread, "flow-chain", input=prompt("tea"), interrupt_before=["draft"])
    client.threads.update_state(thread, {"out": "a text of a person"}, as_node="draft")
    state = client.threads.get_state(thread)
    assert state["next"] == ["polish"]
    values = client.runs.wait(thread, "flow-chain", input=None)
    assert values["result"].endswith("a text of a person")
    assert values["visits"].keys() >= {"polish", "finish"}


def test_dry_run_calls_no_model(client, model, thread):
    words = f"dry{thread.replace('-', '')}"
    values = client.runs.wait(thread, "flow-approval", input=prompt(words), context={"dry_run": True})
    assert values["visits"] == {"draft": 1, "gate": 1, "publish": 1, "finish": 1}
    assert values["result"] == "publish/normal/1"
    assert model.calls(words) == 0


def test_busy_thread_refuses_a_second_run(client, thread, settled):
    run = client.runs.create(thread, "flow-branches", input=prompt("tea"))["run_id"]
    with pytest.raises(ConflictError):
        client.runs.create(thread, "flow-chain", input=prompt("rice"), multitask_strategy="reject")
    assert settled(thread, run) == "success"


def test_cancelled_flow_waits_at_the_node_that_ran(client, thread, settled, resumable):
    run = client.runs.create(thread, "flow-chain", input=prompt("[[hold 3]] tea"), stream_mode="messages-tuple", **resumable)["run_id"]
    for part in client.runs.join_stream(thread, run, last_event_id="-1"):
        if part.event == "messages" and part.data[0]["type"] == "AIMessageChunk":
            break
    client.runs.cancel(thread, run, wait=True)
    assert settled(thread, run) == "interrupted"
    state = client.threads.get_state(thread)
    assert state["next"] == ["draft"]
    assert [kind for kind, _ in visible_messages(state["values"])] == ["human"]
