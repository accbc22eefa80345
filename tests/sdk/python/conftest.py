"""One gateway for all tests, and a client for each of its path prefixes."""

import pytest
from langgraph_sdk import get_sync_client

from rig import Gateway, ScriptedModel, eventually
from messages import user, words


@pytest.fixture(scope="session")
def model():
    with ScriptedModel() as model:
        yield model


@pytest.fixture(scope="session")
def gateway(tmp_path_factory, model):
    with Gateway(tmp_path_factory.mktemp("home"), model.base_url) as gateway:
        yield gateway


@pytest.fixture(params=["", "/api"], ids=["root", "api"])
def prefix(request):
    return request.param


@pytest.fixture
def client(gateway, prefix):
    return get_sync_client(url=gateway.url + prefix, api_key=None)


@pytest.fixture
def resumable(prefix):
    """The platform retains the events of resumable runs only; DeerFlow retains all, and rejects the option."""
    return {} if prefix else {"stream_resumable": True}


@pytest.fixture
def thread(client):
    return client.threads.create()["thread_id"]


@pytest.fixture
def settled(client):
    """Waits for a run's end and returns its status."""

    def settled(thread, run):
        over = lambda: (status := client.runs.get(thread, run)["status"]) not in ("pending", "running") and status
        return eventually(over, "the run's end")

    return settled


@pytest.fixture
def streaming_run(client, thread, resumable):
    """Starts a long run and waits until it has streamed some text."""
    run = client.runs.create(thread, "lead_agent", input=user("[[slow 1000x20ms]]"), stream_mode=["values", "messages-tuple"], **resumable)["run_id"]
    for part in client.runs.join_stream(thread, run, last_event_id="-1"):
        if part.event == "messages" and words(part.data[0]) == "tok3 ":
            return run
    raise AssertionError("the run ended early")
