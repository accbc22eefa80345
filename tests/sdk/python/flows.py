"""Inputs and readers of flows; the flows are in ../flows."""

MODES = ["values", "updates", "custom", "messages-tuple", "tasks", "checkpoints", "debug"]


def prompt(words: str) -> dict:
    return {"userPrompt": words}


def data_of(parts, event: str) -> list:
    return [part.data for part in parts if part.event == event]


def flow_events(parts) -> list[tuple]:
    """Returns the flow's events as (type, node), without those of edges."""
    pairs = [(event["eventType"], event.get("nodeId")) for event in data_of(parts, "custom")]
    return [pair for pair in pairs if pair[0] != "edge_taken"]


def updated_nodes(parts) -> list[str]:
    return [node for update in data_of(parts, "updates") for node in update]


def interrupt_of(values: dict) -> dict:
    (interrupt,) = values["__interrupt__"]
    return interrupt


def checkpoint_before(client, thread: str, node: str) -> dict:
    """Returns the newest state of the history whose pending node is `node`."""
    return next(state for state in client.threads.get_history(thread, limit=50) if state["next"] == [node])


def checkpoint_id(state: dict) -> str:
    """The entries of a history have no `checkpoint` under `/api`."""
    return state.get("checkpoint_id") or state["checkpoint"]["checkpoint_id"]
