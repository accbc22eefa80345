"""The open API of the fake, as lark-oapi calls it. The requests are those of the recordings."""

import io
import json

import lark_oapi as lark
import pytest
from lark_oapi.api.cardkit.v1 import (
    ContentCardElementRequest,
    ContentCardElementRequestBody,
    CreateCardRequest,
    CreateCardRequestBody,
    SettingsCardRequest,
    SettingsCardRequestBody,
)
from lark_oapi.api.im.v1 import (
    CreateFileRequest,
    CreateFileRequestBody,
    CreateImageRequest,
    CreateImageRequestBody,
    CreateMessageReactionRequest,
    CreateMessageReactionRequestBody,
    CreateMessageRequest,
    CreateMessageRequestBody,
    Emoji,
    GetMessageResourceRequest,
    ListMessageRequest,
    PatchMessageRequest,
    PatchMessageRequestBody,
    ReplyMessageRequest,
    ReplyMessageRequestBody,
)

CARD = json.dumps(
    {
        "config": {"wide_screen_mode": True, "update_multi": True},
        "elements": [{"tag": "markdown", "content": "thinking…"}],
    },
    ensure_ascii=False,
)
STREAMING = json.dumps(
    {
        "schema": "2.0",
        "config": {
            "streaming_mode": True,
            "update_multi": True,
            "summary": {"content": "[generating]"},
        },
        "body": {"elements": [{"tag": "markdown", "content": "", "element_id": "answer"}]},
    }
)


@pytest.fixture
def client(fake):
    builder = lark.Client.builder().app_id("cli_a").app_secret("secret").domain(fake.base)
    # The SDK keeps tokens in a store of the process, by app.
    from lark_oapi.core.token import manager

    manager.TokenManager.cache = type(manager.TokenManager.cache)()
    return builder.log_level(lark.LogLevel.ERROR).build()


def reply(client, message, content, kind="interactive", uuid="outbox-1", in_thread=None):
    body = ReplyMessageRequestBody.builder().msg_type(kind).content(content).uuid(uuid)
    if in_thread is not None:
        body = body.reply_in_thread(in_thread)
    request = ReplyMessageRequest.builder().message_id(message).request_body(body.build())
    return client.im.v1.message.reply(request.build())


def create(client, chat, uuid="outbox-2", text='{"text":"hi"}'):
    body = CreateMessageRequestBody.builder().receive_id(chat).msg_type("text")
    request = CreateMessageRequest.builder().receive_id_type("chat_id")
    request = request.request_body(body.content(text).uuid(uuid).build())
    return client.im.v1.message.create(request.build())


def patch(client, message, content=CARD):
    body = PatchMessageRequestBody.builder().content(content).build()
    request = PatchMessageRequest.builder().message_id(message).request_body(body)
    return client.im.v1.message.patch(request.build())


def create_card(client):
    body = CreateCardRequestBody.builder().type("card_json").data(STREAMING).build()
    return client.cardkit.v1.card.create(CreateCardRequest.builder().request_body(body).build())


def stream(client, card, text, sequence):
    body = ContentCardElementRequestBody.builder().content(text).sequence(sequence)
    request = ContentCardElementRequest.builder().card_id(card).element_id("answer")
    request = request.request_body(body.uuid(f"u-{sequence}").build()).build()
    return client.cardkit.v1.card_element.content(request)


def settings(client, card, is_on, sequence):
    text = json.dumps({"config": {"streaming_mode": is_on}}, separators=(",", ":"))
    body = SettingsCardRequestBody.builder().settings(text).sequence(sequence).uuid("u")
    request = SettingsCardRequest.builder().card_id(card).request_body(body.build())
    return client.cardkit.v1.card.settings(request.build())


def body_of(fake, method):
    return fake.calls(method)[-1]["body"]["body"]


def test_reactions_replies_and_edits_equal_the_recordings(fake, client):
    message = fake.write()
    emoji = Emoji.builder().emoji_type("OK").build()
    body = CreateMessageReactionRequestBody.builder().reaction_type(emoji).build()
    request = CreateMessageReactionRequest.builder().message_id(message).request_body(body)
    answer = client.im.v1.message_reaction.create(request.build())
    assert answer.success() and answer.data.reaction_type.emoji_type == "OK"
    assert body_of(fake, "POST im/v1/messages/reactions") == {
        "reaction_type": {"emoji_type": "OK"}
    }
    answer = reply(client, message, CARD, in_thread=True)
    assert answer.success()
    assert body_of(fake, "POST im/v1/messages/reply") == {
        "content": CARD,
        "msg_type": "interactive",
        "reply_in_thread": True,
        "uuid": "outbox-1",
    }
    assert reply(client, message, CARD).data.message_id == answer.data.message_id
    assert create(client, "oc_1").success()
    created = fake.calls("POST im/v1/messages")[-1]["body"]
    assert created["query"] == {"receive_id_type": "chat_id"}
    assert created["body"] == {
        "receive_id": "oc_1",
        "msg_type": "text",
        "content": '{"text":"hi"}',
        "uuid": "outbox-2",
    }
    text = CARD.replace("thinking…", "done")
    assert patch(client, answer.data.message_id, text).success()
    assert body_of(fake, "PATCH im/v1/messages") == {"content": text}
    assert fake.visible() == ["done", "hi"]


def test_streaming_card_equals_the_recordings(fake, client):
    message = fake.write()
    card = create_card(client).data.card_id
    assert body_of(fake, "POST cardkit/v1/cards") == {"type": "card_json", "data": STREAMING}
    reference = json.dumps({"type": "card", "data": {"card_id": card}}, separators=(",", ":"))
    assert reply(client, message, reference).success()
    assert stream(client, card, "Hello wor", 1).success()
    assert body_of(fake, "PUT cardkit/v1/cards/elements/content") == {
        "uuid": "u-1",
        "content": "Hello wor",
        "sequence": 1,
    }
    assert stream(client, card, "Hello", 1).code == 300317
    assert settings(client, card, False, 2).success()
    assert body_of(fake, "PATCH cardkit/v1/cards/settings") == {
        "settings": '{"config":{"streaming_mode":false}}',
        "uuid": "u",
        "sequence": 2,
    }
    assert stream(client, card, "Hello world", 3).code == 300309
    assert settings(client, card, True, 4).success()
    assert stream(client, card, "Hello world", 5).success()
    assert fake.visible() == ["Hello world"]


def test_files_are_uploaded_and_downloaded(fake, client):
    body = CreateImageRequestBody.builder().image_type("message").image(io.BytesIO(b"PNG"))
    image = client.im.v1.image.create(
        CreateImageRequest.builder().request_body(body.build()).build()
    )
    assert image.success() and image.data.image_key
    body = CreateFileRequestBody.builder().file_type("pdf").file_name("a.pdf")
    body = body.file(io.BytesIO(b"PDF")).build()
    uploaded = client.im.v1.file.create(CreateFileRequest.builder().request_body(body).build())
    assert uploaded.success() and uploaded.data.file_key
    message = fake.write()
    content = json.dumps({"file_key": uploaded.data.file_key})
    assert reply(client, message, content, kind="file").success()
    fake.post(
        "feishu/file", message=message, key="img_9", file_type="image", base64="UE5H"
    )
    request = GetMessageResourceRequest.builder().message_id(message).file_key("img_9")
    answer = client.im.v1.message_resource.get(request.type("image").build())
    assert answer.success() and answer.file.read() == b"PNG"
    wrong = GetMessageResourceRequest.builder().message_id(message).file_key("img_9")
    assert not client.im.v1.message_resource.get(wrong.type("file").build()).success()


def test_refusals_have_the_codes_of_the_platform(fake, client):
    message = fake.write()
    assert reply(client, "om_unknown", CARD).code == 230011
    assert create(client, "oc_unknown").code == 230002
    assert reply(client, message, "no JSON").code == 230001
    assert patch(client, message).code == 230017
    long = json.dumps({"text": "x" * 160_000})
    assert create(client, "oc_1", text=long).code == 230025
    fake.post("feishu/behaviour", remove_scopes=["cardkit:card:write"])
    assert create_card(client).code == 99991672
    fake.post("faults", **{"POST im/v1/messages": [{"rate_limited": {"retry_after": 3}}]})
    answer = create(client, "oc_1")
    assert answer.code == 99991400
    assert answer.raw.status_code == 429
    assert answer.raw.headers["x-ogw-ratelimit-reset"] == "3"


def test_sixth_message_of_a_second_is_refused(fake, client):
    fake.write()
    codes = [create(client, "oc_1", uuid=f"u-{number}").code for number in range(6)]
    assert codes == [0, 0, 0, 0, 0, 230020]


def test_messages_are_listed_by_page(fake, client):
    ids = [fake.write(f"text {number}") for number in range(5)]
    found, token = [], None
    while True:
        request = ListMessageRequest.builder().container_id_type("chat").container_id("oc_1")
        request = request.start_time("0").page_size(2)
        if token:
            request = request.page_token(token)
        data = client.im.v1.message.list(request.build()).data
        found += [item.message_id for item in data.items]
        token = data.page_token
        if not data.has_more:
            break
    assert found == ids


def test_expired_token_is_refused(fake, client):
    fake.write()
    assert create(client, "oc_1").success()
    fake.post("feishu/behaviour", expire_tokens=True)
    assert create(client, "oc_1", uuid="other").code == 99991663
