"""Nested agents of tool calls: their state, interrupts and frames."""
import pytest

from helpers import NODES, T, is_uuid, last_ai, visible_pairs, tool_call

pytestmark = [pytest.mark.cap("nested_state"), pytest.mark.tool("task"), pytest.mark.tool("ask_clarification")]
TL, M = NODES["tools"], NODES["model"]
ASK = tool_call("ask_clarification", {"question": "which one?"}) + " then say inside"
TASK = tool_call("task", {"prompt": ASK}) + " then say outside"


@pytest.fixture
def asked(api, tid):
    return tid, api.wait(tid, TASK)


def at(api, tid, checkpoint, **kw):
    return api.post(f"/threads/{tid}/state/checkpoint", {"checkpoint": checkpoint, **kw})


def test_nested_interrupt_is_an_interrupt_of_the_run(api, asked):
    tid, v = asked
    (i,) = v["__interrupt__"]
    assert i["value"] == {"question": "which one?"}
    assert api.state(tid)["tasks"][0]["interrupts"][0]["id"] == i["id"]


def test_state_names_the_nested_agent(api, asked):
    tid, _ = asked
    (task,) = api.state(tid)["tasks"]
    assert task["state"] is None
    assert task["checkpoint"]["checkpoint_ns"] == f"{TL}:{task['id']}" and task["checkpoint"]["thread_id"] == tid


def test_state_with_subgraphs_has_the_nested_state(api, asked):
    tid, v = asked
    s = api.get(f"/threads/{tid}/state?subgraphs=true").json()
    (task,) = s["tasks"]
    inner = task["state"]
    assert task["checkpoint"] is None and inner["next"] == [TL]
    assert visible_pairs(inner["values"])[0] == ("human", ASK)
    assert inner["interrupts"][0]["id"] == v["__interrupt__"][0]["id"]
    assert inner["metadata"]["parents"] == {"": s["checkpoint_id"]}
    own = inner["checkpoint"]
    assert own["checkpoint_map"] == {"": s["checkpoint_id"], own["checkpoint_ns"]: own["checkpoint_id"]} and is_uuid(own["checkpoint_id"])


def test_nested_agent_is_found_by_its_namespace(api, asked):
    tid, _ = asked
    visible = api.get(f"/threads/{tid}/state?subgraphs=true").json()["tasks"][0]["state"]
    reference = api.state(tid)["tasks"][0]["checkpoint"]
    assert at(api, tid, reference).json() == visible
    assert at(api, tid, visible["checkpoint"]).json() == visible
    assert api.post(f"/threads/{tid}/history", {"checkpoint": reference}).json() == [visible]


def test_unknown_namespaces_are_empty(api, asked):
    tid, _ = asked
    for ns in (f"{TL}:00000000-0000-4000-8000-000000000000", "|", "nowhere"):
        r = at(api, tid, {"checkpoint_ns": ns})
        assert r.status_code == 200 and r.json()["values"] == {}
    assert at(api, tid, {"checkpoint_ns": 1}).status_code == 422


def test_nested_state_cannot_be_updated(api, asked):
    tid, _ = asked
    before = api.get(f"/threads/{tid}/state?subgraphs=true").json()
    checkpoint = before["tasks"][0]["state"]["checkpoint"]
    for place in (checkpoint, {"checkpoint_ns": checkpoint["checkpoint_ns"]}):
        r = api.post(f"/threads/{tid}/state", {"values": {"messages": ["x"]}, "checkpoint": place})
        assert r.status_code == 400
    assert api.get(f"/threads/{tid}/state?subgraphs=true").json() == before


def test_answer_resumes_the_nested_agent(api, asked):
    tid, _ = asked
    v = api.wait(tid, None, command={"resume": "red"})
    assert visible_pairs(v)[-2:] == [("tool", "inside"), ("ai", "outside")]
    assert api.state(tid)["tasks"] == []


def test_answer_by_id_resumes_the_nested_agent(api, asked):
    tid, v = asked
    v = api.wait(tid, None, command={"resume": {v["__interrupt__"][0]["id"]: "red"}})
    assert last_ai(v) == "outside"


def test_nested_agent_can_interrupt_twice(api, tid):
    twice = tool_call("ask_twice", {"first": "a?", "second": "b?"}) + " then say inside"
    api.wait(tid, tool_call("task", {"prompt": twice}) + " then say outside")
    v = api.wait(tid, None, command={"resume": "A"})
    assert v["__interrupt__"][0]["value"] == {"question": "b?"}
    inner = api.get(f"/threads/{tid}/state?subgraphs=true").json()["tasks"][0]["state"]
    assert inner["interrupts"][0]["id"] == v["__interrupt__"][0]["id"]
    assert last_ai(api.wait(tid, None, command={"resume": "B"})) == "outside"


def test_past_checkpoint_has_the_nested_state(api, tid):
    api.wait(tid, tool_call("task", {"prompt": "then say inside"}) + " then say outside")
    past = next(s for s in api.get(f"/threads/{tid}/history?limit=10").json() if s["next"] == [TL])
    ns = past["tasks"][0]["checkpoint"]["checkpoint_ns"]
    assert visible_pairs(at(api, tid, {"checkpoint_ns": ns}).json()["values"]) == [("human", "then say inside"), ("ai", "inside")]
    s = api.get(f"/threads/{tid}/state/{past['checkpoint_id']}?subgraphs=true").json()
    assert last_ai(s["tasks"][0]["state"]["values"]) == "inside"


def test_nested_checkpoint_frame_resolves_to_its_state(api, tid):
    s = api.stream(tid, TASK, stream_mode=["checkpoints", "debug", "tasks"], stream_subgraphs=True)
    inside = [e for e in s.events if e.ns]
    assert {e.kind for e in inside} == {"checkpoints", "debug", "tasks"}
    steps = [e.data["metadata"]["step"] for e in inside if e.kind == "checkpoints"]
    assert steps == [-1, 0, 1]
    place = [e.data["payload"]["checkpoint"] for e in inside if e.kind == "debug" and e.data["type"] == "checkpoint"][-1]
    assert at(api, tid, place).json()["checkpoint"] == place


def test_copy_includes_the_nested_agent(api, asked):
    copy = api.post(f"/threads/{asked[0]}/copy").json()["thread_id"]
    inner = api.get(f"/threads/{copy}/state?subgraphs=true").json()["tasks"][0]["state"]
    assert inner["checkpoint"]["thread_id"] == copy
    assert last_ai(api.wait(copy, None, command={"resume": "red"})) == "outside"
    assert api.state(asked[0])["next"] == [TL]
