"""client.runs.stream, join and reconnect for flows."""

from langgraph_sdk import get_sync_client

from cutter import Cutter
from flows import MODES, data_of, flow_events, prompt, updated_nodes
from messages import visible_messages, words


def test_modes_show_each_node_once(client, thread, settled):
    parts = list(client.runs.stream(thread, "flow-chain", input=prompt("tea"), stream_mode=MODES))
    assert parts[0].event == "metadata" and "error" not in {part.event for part in parts}
    assert {"values", "updates", "custom", "messages", "tasks", "checkpoints", "debug"} <= {part.event for part in parts}
    assert [node for node in updated_nodes(parts) if node != "__start__"] == ["draft", "polish", "finish"]
    values = data_of(parts, "values")[-1]
    assert values["visits"] == {"draft": 1, "polish": 1, "finish": 1}
    assert values["result"].startswith("a polished text of tea")
    stored = client.threads.get_state(thread)["values"]
    assert [message["id"] for message in stored.pop("messages")] == [message["id"] for message in values.pop("messages")]
    assert stored == values
    assert settled(thread, parts[0].data["run_id"]) == "success"


def test_flow_events_come_in_order(client, thread):
    parts = list(client.runs.stream(thread, "flow-chain", input=prompt("tea"), stream_mode="custom"))
    turn = lambda node: [(kind, node) for kind in ["node_started", "agent_selected", "turn_completed", "node_completed"]]
    finish = [("node_started", "finish"), ("node_completed", "finish")]
    assert flow_events(parts) == [("run_started", None), *turn("draft"), *turn("polish"), *finish, ("run_completed", None)]
    edges = [event["payload"] for event in data_of(parts, "custom") if event["eventType"] == "edge_taken"]
    assert [(edge["from"], edge["to"]) for edge in edges] == [("draft", "polish"), ("polish", "finish")]
    ids = [event["eventId"] for event in data_of(parts, "custom")]
    assert len(set(ids)) == len(ids)


def test_conversation_has_one_answer(client, thread):
    parts = list(client.runs.stream(thread, "flow-chain", input=prompt("tea"), stream_mode=["values", "messages-tuple"]))
    values = data_of(parts, "values")[-1]
    assert [kind for kind, _ in visible_messages(values)] == ["human", "ai"]
    answer = values["messages"][-1]
    assert (answer["name"], words(answer)) == ("Chain", values["result"])
    pieces = {}
    for chunk, about in data_of(parts, "messages"):
        if chunk["type"] in ("ai", "AIMessageChunk"):
            pieces.setdefault((about["langgraph_node"], chunk["id"]), []).append(chunk)
    assert [node for node, _ in pieces] == ["draft", "polish"]
    assert "".join(map(words, pieces[("polish", answer["id"])])).strip() == values["result"]
    assert all(len(chunks) > 1 for chunks in pieces.values())


def test_second_run_continues_the_conversation(client, thread):
    client.runs.wait(thread, "flow-chain", input=prompt("tea"))
    values = client.runs.wait(thread, "flow-chain", input={"messages": [{"role": "user", "content": "rice"}]})
    assert [kind for kind, _ in visible_messages(values)] == ["human", "ai", "human", "ai"]
    assert values["visits"] == {"draft": 1, "polish": 1, "finish": 1}
    assert values["result"].startswith("a polished text of rice")


def test_branches_stream_side_by_side(client, thread):
    parts = list(client.runs.stream(thread, "flow-branches", input=prompt("tea"), stream_mode=["updates", "messages-tuple", "custom"]))
    branches = ["left", "middle", "right"]
    nodes = [about["langgraph_node"] for _, about in data_of(parts, "messages")]
    first, last = {node: nodes.index(node) for node in branches}, {node: len(nodes) - nodes[::-1].index(node) for node in branches}
    assert max(first.values()) < min(last.values())
    assert [node for node in updated_nodes(parts) if node in branches] == branches
    assert all(len(update) == 1 for update in data_of(parts, "updates"))
    assert [kind for kind, _ in visible_messages(client.threads.get_state(thread)["values"])] == ["human", "ai"]


def test_subflow_streams_in_its_namespace(client, thread):
    parts = list(
        client.runs.stream(thread, "flow-outer", input=prompt("tea"), stream_mode=["updates", "custom", "messages-tuple"], stream_subgraphs=True)
    )
    assert [node for node in updated_nodes(parts) if node != "__start__"] == ["inner", "condense", "finish"]
    spaces = {part.event for part in parts if "|" in part.event}
    assert any(space.split("|")[1].startswith("inner:") for space in spaces), {part.event for part in parts}
    completed = [event.get("nodeId") for part in parts if part.event.split("|")[0] == "custom" for event in [part.data] if event["eventType"] == "node_completed"]
    assert completed == ["inner/draft", "inner/polish", "inner/finish", "inner", "condense", "finish"]


def test_tasks_state_their_results(client, thread):
    parts = list(client.runs.stream(thread, "flow-chain", input=prompt("tea"), stream_mode="tasks"))
    started = [(task["id"], task["name"]) for task in data_of(parts, "tasks") if "triggers" in task]
    ended = [(task["id"], task["name"]) for task in data_of(parts, "tasks") if "result" in task]
    assert [name for _, name in started] == ["draft", "polish", "finish"]
    assert ended == started


def test_reconnected_viewer_of_a_flow_has_no_gap(client, thread, settled, resumable):
    run = client.runs.create(thread, "flow-branches", input=prompt("tea"), stream_mode=MODES, **resumable)["run_id"]
    events = lambda parts: [(part.id, part.event, part.data) for part in parts if part.event != "end"]
    seen = []
    for part in client.runs.join_stream(thread, run, last_event_id="-1"):
        seen.append(part)
        if len(seen) == 25:
            break
    rest = list(client.runs.join_stream(thread, run, last_event_id=seen[-1].id))
    whole = list(client.runs.join_stream(thread, run, last_event_id="-1"))
    assert events(seen + rest) == events(whole)
    ids = [id for id, _, _ in events(whole)]
    assert all(ids) and len(set(ids)) == len(ids)
    assert settled(thread, run) == "success"


def test_client_resumes_a_broken_stream_of_a_flow(gateway, prefix, resumable):
    with Cutter(gateway.port, cuts=[6, 9]) as cutter:
        client = get_sync_client(url=cutter.url + prefix, api_key=None)
        thread = client.threads.create()["thread_id"]
        parts = list(client.runs.stream(thread, "flow-chain", input=prompt("tea"), stream_mode=["custom", "messages-tuple"], on_disconnect="continue", **resumable))
        assert len(cutter.streams()) > 1
        events = flow_events(parts)
        assert (events[0], events[-1]) == (("run_started", None), ("run_completed", None))
        assert len(set(events)) == len(events) == 12
        assert [run["status"] for run in client.runs.list(thread)] == ["success"]


def test_run_without_thread_returns_the_result(client):
    values = client.runs.wait(None, "flow-chain", input=prompt("tea"))
    assert values["result"].startswith("a polished text of tea")
