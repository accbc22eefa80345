"""client.assistants for flows, and flows of users over HTTP."""

import pytest
from langgraph_sdk.errors import APIStatusError, NotFoundError, UnprocessableEntityError

from flows import prompt

NAMES = {f"flow-{name}" for name in ["approval", "branches", "chain", "failing", "outer"]}


@pytest.fixture
def flows(client, gateway, prefix):
    """Flows of the user; each test deletes its own."""
    made = []

    def store(slug: str, content: str) -> dict:
        made.append(slug)
        return client.http.post("/flows", json={"id": slug, "content": content})

    yield store
    for slug in made:
        client.http.delete(f"/flows/{slug}")


def id_of(client, graph: str) -> str:
    """The root accepts ids alone where an assistant is read."""
    (found,) = client.assistants.search(graph_id=graph)
    return found["assistant_id"]


def text_of(gateway, name: str) -> str:
    return (gateway.home / "flows" / f"{name}.yaml").read_text()


def test_flows_are_found_by_their_kind(client):
    found = {listed["graph_id"]: listed for listed in client.assistants.search(metadata={"kind": "flow"}, limit=100)}
    assert NAMES <= found.keys() and "lead_agent" not in found
    chain = found["flow-chain"]["metadata"]
    assert (chain["kind"], chain["schema_version"]) == ("flow", "2.0")
    # The version of a flow of the folder is a number that follows from its content.
    assert chain["flow_version"] > 0
    assert len(chain["content_hash"]) == 64
    assert client.assistants.search(limit=100)[0]["graph_id"] == "lead_agent"


def test_flow_is_found_by_its_graph(client):
    read = client.assistants.get(id_of(client, "flow-chain"))
    assert (read["graph_id"], read["description"]) == ("flow-chain", "Drafts and polishes a text.")


def test_graph_shows_nodes_and_edges(client):
    graph = client.assistants.get_graph("flow-branches")
    nodes = {node["id"] for node in graph["nodes"]}
    assert nodes >= {"__start__", "split", "left", "middle", "right", "join", "summary", "finish", "__end__"}
    edges = {(edge["source"], edge["target"]) for edge in graph["edges"]}
    assert {("__start__", "split"), ("split", "left"), ("right", "join"), ("finish", "__end__")} <= edges
    conditional = {(edge["source"], edge["target"]): edge.get("conditional", False) for edge in client.assistants.get_graph("flow-approval")["edges"]}
    assert conditional[("gate", "publish")] is True and conditional[("draft", "gate")] is False


def test_graph_expands_subflows_on_request(client):
    plain = {node["id"] for node in client.assistants.get_graph("flow-outer")["nodes"]}
    assert "inner" in plain and "inner:draft" not in plain
    expanded = {node["id"] for node in client.assistants.get_graph("flow-outer", xray=True)["nodes"]}
    assert {"inner:draft", "inner:polish", "condense"} <= expanded


@pytest.mark.parametrize("prefix", [""], ids=["root"], indirect=True)
def test_subgraphs_are_the_subflows(client):
    assert "inner" in client.assistants.get_subgraphs(id_of(client, "flow-outer"))


def test_schemas_name_input_and_channels(client):
    schemas = client.assistants.get_schemas(id_of(client, "flow-chain"))
    assert schemas["graph_id"] == "flow-chain"
    assert {"userPrompt", "messages"} <= schemas["input_schema"]["properties"].keys()
    assert {"messages", "ports", "outputs", "result", "visits"} <= schemas["state_schema"]["properties"].keys()


def test_new_content_is_a_new_version(client, flows, gateway):
    flows("mine", text_of(gateway, "chain"))
    before = client.assistants.get(id_of(client, "flow-mine"))["metadata"]
    client.http.put("/flows/mine", json={"content": text_of(gateway, "chain").replace("Chain", "Changed")})
    after = client.assistants.get(id_of(client, "flow-mine"))["metadata"]
    assert (before["flow_version"], after["flow_version"]) == (1, 2)
    assert before["content_hash"] != after["content_hash"]
    versions = client.http.get("/flows/mine/versions")
    assert [entry["version"] for entry in versions] == [2, 1]


def test_waiting_thread_continues_with_its_content(client, thread, flows, gateway):
    flows("pinned", text_of(gateway, "approval"))
    client.runs.wait(thread, "flow-pinned", input=prompt("a"))
    client.http.put("/flows/pinned", json={"content": text_of(gateway, "approval").replace("then say published", "then say replaced")})
    end = client.runs.wait(thread, "flow-pinned", command={"resume": "approve"})
    assert end["result"].startswith("published")
    again = client.threads.create()["thread_id"]
    client.runs.wait(again, "flow-pinned", input=prompt("a"))
    assert client.runs.wait(again, "flow-pinned", command={"resume": "approve"})["result"].startswith("replaced")


def test_invalid_flow_is_refused_with_all_findings(client, gateway):
    broken = text_of(gateway, "chain").replace("target: polish", "target: nowhere").replace("startNodeId: draft", "startNodeId: none")
    with pytest.raises(UnprocessableEntityError) as refused:
        client.http.post("/flows", json={"id": "broken", "content": broken})
    codes = {finding["code"] for finding in refused.value.body["detail"]}
    assert {"edge_target_not_found", "start_node_not_found"} <= codes
    with pytest.raises(NotFoundError):
        client.http.get("/flows/broken")


def test_unknown_flow_starts_no_run(client, thread):
    with pytest.raises(APIStatusError) as refused:
        client.runs.create(thread, "flow-nothing", input=prompt("a"))
    assert refused.value.status_code in (404, 422)
    with pytest.raises(UnprocessableEntityError):
        client.runs.create(thread, "flow-chain", input={"userPrompt": ["no text"]})
    assert client.runs.list(thread) == []
