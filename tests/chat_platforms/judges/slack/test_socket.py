"""slack_sdk's Socket Mode client against the fake."""

import pytest
from conftest import web_client
from slack_sdk.errors import SlackApiError


def test_mention_arrives_as_message_and_mention(fake, listen):
    listener = listen()
    ts = fake.say("C1", "hello", mention=True)
    requests = [listener.next(), listener.next()]
    events = {request.payload["event"]["type"]: request.payload["event"] for request in requests}
    assert set(events) == {"message", "app_mention"}
    assert {event["ts"] for event in events.values()} == {ts}
    assert events["message"]["channel_type"] == "channel"
    assert requests[0].payload["authorizations"][0]["user_id"] == "UBOT"
    acks = fake.wait_for("ack", 2)
    assert all(ack["error"] == 0 for ack in acks)


def test_unacknowledged_event_comes_again_with_a_reason(fake, listen):
    fake.options(ack_timeout_ms=200, redelivery_ms=[0, 50])
    listener = listen(acknowledges=False)
    fake.say("DU1", "hello")
    attempts = [listener.next() for _ in range(3)]
    assert [request.retry_attempt for request in attempts] == [0, 1, 2]
    assert [request.retry_reason for request in attempts] == ["", "timeout", "timeout"]
    assert len({request.envelope_id for request in attempts}) == 3
    assert len({request.payload["event"]["ts"] for request in attempts}) == 1
    fake.wait_for("undelivered")


def test_event_without_a_connection_is_delivered_later(fake, listen):
    fake.options(redelivery_ms=[1500])
    fake.say("DU1", "hello")
    listener = listen()
    request = listener.next()
    assert (request.retry_attempt, request.payload["event"]["text"]) == (1, "hello")


def test_client_opens_a_new_connection_before_the_old_one_ends(fake, listen):
    listener = listen()
    fake.wait_for("socket.open")
    fake.request("POST", "/_fake/connections/refresh_requested")
    fake.wait_for("socket.open", 2)
    fake.wait_for("socket.close")
    calls = [call["method"] for call in fake.request("GET", "/_fake/calls") if call["method"].startswith("socket.")]
    assert calls == ["socket.open", "socket.open", "socket.close"]
    fake.say("DU1", "again")
    assert listener.next().payload["event"]["text"] == "again"


def test_press_arrives_as_block_actions(fake, web, listen):
    listener = listen()
    button = {"type": "button", "action_id": "a", "value": "yes", "text": {"type": "plain_text", "text": "Yes"}}
    posted = web.chat_postMessage(channel="C1", text="sure?", blocks=[{"type": "actions", "elements": [button]}])
    press = {"channel": "C1", "ts": posted["ts"], "value": "yes", "user": "U1"}
    fake.request("POST", "/_fake/press", press)
    request = listener.next()
    assert (request.type, request.payload["type"]) == ("interactive", "block_actions")
    assert request.payload["actions"][0]["value"] == "yes"
    assert request.payload["container"]["message_ts"] == posted["ts"]


def test_ten_connections_are_the_maximum(fake, listen):
    for _ in range(10):
        listen()
    fake.wait_for("socket.open", 10)
    with pytest.raises(SlackApiError) as refused:
        web_client(fake).apps_connections_open(app_token="xapp-1")
    assert refused.value.response.status_code == 429
    assert refused.value.response.headers["Retry-After"] == "30"
