"""slack_sdk's Web API client against the fake."""

import urllib.request

import pytest
from conftest import web_client
from slack_sdk.errors import SlackApiError


def error_of(call, *arguments, **fields):
    with pytest.raises(SlackApiError) as raised:
        call(*arguments, **fields)
    return raised.value.response


def test_auth_test_names_bot_and_scopes(web):
    answer = web.auth_test()
    assert (answer["team_id"], answer["user_id"], answer["bot_id"]) == ("T1", "UBOT", "B1")
    assert "chat:write" in answer.headers["x-oauth-scopes"].split(",")


def test_wrong_tokens_are_refused(fake):
    assert error_of(web_client(fake, "xoxb-wrong").auth_test)["error"] == "invalid_auth"
    assert error_of(web_client(fake, "xapp-1").auth_test)["error"] == "not_allowed_token_type"
    assert error_of(web_client(fake).apps_connections_open, app_token="xoxb-1")["error"] == "not_allowed_token_type"


def test_messages_are_posted_updated_and_listed(fake, web):
    asked = fake.say("C1", "hello", mention=True)
    posted = web.chat_postMessage(channel="C1", text="*hi*", thread_ts=asked)
    web.chat_update(channel="C1", ts=posted["ts"], text="more")
    thread = web.conversations_replies(channel="C1", ts=asked)["messages"]
    assert [message["text"] for message in thread] == ["<@UBOT> hello", "more"]
    history = web.conversations_history(channel="C1", oldest="1.0", limit=200)["messages"]
    assert [message["ts"] for message in history] == [asked]
    body = fake.calls("chat.postMessage")[0]["body"]
    assert body == {"channel": "C1", "text": "*hi*", "thread_ts": asked}


def test_update_longer_than_4000_bytes_is_refused(web):
    posted = web.chat_postMessage(channel="C1", text="a")
    web.chat_update(channel="C1", ts=posted["ts"], text="é" * 2000)
    assert error_of(web.chat_update, channel="C1", ts=posted["ts"], text="é" * 2000 + "a")["error"] == "msg_too_long"


def test_repeated_key_returns_the_same_message(fake, web):
    sent = [web.chat_postMessage(channel="C1", text="a", client_msg_id="k")["ts"] for _ in range(2)]
    assert sent[0] == sent[1]
    assert len(fake.messages("C1")) == 1


def test_unknown_places_are_refused(web):
    assert error_of(web.chat_postMessage, channel="C404", text="a")["error"] == "channel_not_found"
    assert error_of(web.chat_postMessage, channel="C1", text="a", thread_ts="1.1")["error"] == "thread_not_found"
    assert error_of(web.chat_update, channel="C1", ts="1.1", text="a")["error"] == "message_not_found"


def test_reactions_are_added_once(fake, web):
    asked = fake.say("C1", "hello")
    web.reactions_add(channel="C1", timestamp=asked, name="eyes")
    assert error_of(web.reactions_add, channel="C1", timestamp=asked, name="eyes")["error"] == "already_reacted"
    web.reactions_remove(channel="C1", timestamp=asked, name="eyes")
    assert error_of(web.reactions_remove, channel="C1", timestamp=asked, name="eyes")["error"] == "no_reaction"


def test_stream_of_the_sdk_is_one_message(fake, web):
    asked = fake.say("C1", "hello", mention=True)
    stream = web.chat_stream(
        channel="C1", thread_ts=asked, recipient_team_id="T1", recipient_user_id="U1", buffer_size=1
    )
    stream.append(markdown_text="**He")
    stream.append(markdown_text="llo**")
    stream.stop(markdown_text="!")
    answer = fake.messages("C1")[-1]
    assert (answer["text"], answer["thread_ts"]) == ("**Hello**!", asked)


def test_stream_needs_recipients_and_ends_by_itself(fake, web):
    asked = fake.say("C1", "hello", mention=True)
    assert error_of(web.chat_startStream, channel="C1", thread_ts=asked)["error"] == "missing_recipient_team_id"
    recipients = {"recipient_team_id": "T1", "recipient_user_id": "U1"}
    started = web.chat_startStream(channel="C1", thread_ts=asked, markdown_text="a", **recipients)
    place = {"channel": "C1", "ts": started["ts"]}
    assert error_of(web.chat_update, text="b", **place)["error"] == "streaming_state_conflict"
    fake.options(stream_lifetime_ms=0)
    for call in (web.chat_appendStream, web.chat_stopStream):
        assert error_of(call, markdown_text="b", **place)["error"] == "message_not_in_streaming_state"
    web.chat_update(text="b", **place)


def test_missing_method_and_scope_are_named(fake, web):
    fake.options(unknown_methods=["chat.startStream"], scopes=["chat:write"])
    assert error_of(web.chat_startStream, channel="C1", thread_ts="1.1")["error"] == "unknown_method"
    answer = error_of(web.reactions_add, channel="C1", timestamp="1.1", name="eyes")
    assert (answer["error"], answer["needed"]) == ("missing_scope", "reactions:write")


def test_blocks_are_checked(web):
    def actions(count):
        buttons = [
            {"type": "button", "action_id": f"a{n}", "value": "v", "text": {"type": "plain_text", "text": "x"}}
            for n in range(count)
        ]
        return [{"type": "actions", "elements": buttons}]

    web.chat_postMessage(channel="C1", text="a", blocks=actions(25))
    assert error_of(web.chat_postMessage, channel="C1", text="a", blocks=actions(26))["error"] == "invalid_blocks"


def test_uploaded_file_is_shared_and_readable(fake, web):
    asked = fake.say("C1", "hello")
    web.files_upload_v2(channel="C1", content="hello", filename="a.txt", title="a.txt", thread_ts=asked)
    shared = fake.messages("C1")[-1]
    file = shared["files"][0]
    assert (file["name"], shared["thread_ts"]) == ("a.txt", asked)
    assert web.files_info(file=file["id"])["file"]["channels"] == ["C1"]

    def download(token):
        request = urllib.request.Request(file["url_private_download"], headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.headers["Content-Type"], response.read()

    assert download("xoxb-1")[1] == b"hello"
    fake.options(scopes=["files:write"])
    kind, page = download("xoxb-1")
    assert kind.startswith("text/html") and b"Sign in" in page


def test_rate_limits_name_their_delay(limited_fake):
    web = web_client(limited_fake)
    for _ in range(3):
        web.chat_postMessage(channel="C1", text="a")
    refused = error_of(web.chat_postMessage, channel="C1", text="a")
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 3
    web.chat_postMessage(channel="C2", text="a")


def test_scripted_fault_is_answered(fake, web):
    fake.faults(chat__postMessage=[{"rate_limited": {"retry_after": 33}}])
    refused = error_of(web.chat_postMessage, channel="C1", text="a")
    assert (refused["error"], refused.headers["Retry-After"]) == ("ratelimited", "33")
    web.chat_postMessage(channel="C1", text="a")
