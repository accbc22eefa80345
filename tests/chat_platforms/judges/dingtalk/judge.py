"""Runs dingtalk-stream against the fake of DingTalk and checks that both agree."""

import asyncio
import os
import sys
import traceback

import aiohttp
import dingtalk_stream
from dingtalk_stream import card_replier, chatbot, stream

BASE = sys.argv[1]
GROUP = "cid-group"
TEMPLATE = "template.schema"


class Control:
    """Control routes of the fake."""

    def __init__(self, http):
        self.http = http

    async def post(self, path, body):
        async with self.http.post(f"{BASE}/_fake/{path}", json=body) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json() if answer.status == 200 else None

    async def get(self, path):
        async with self.http.get(f"{BASE}/_fake/{path}") as answer:
            return await answer.json()

    async def wait_calls(self, method, count):
        for _ in range(200):
            calls = [call for call in await self.get("calls") if call["method"] == method]
            if len(calls) >= count:
                return calls
            await asyncio.sleep(0.05)
        raise AssertionError(f"{method}: {len(calls)} calls instead of {count}")


class Handler(dingtalk_stream.ChatbotHandler):
    """Handler that queues messages."""

    def __init__(self):
        super().__init__()
        self.received = asyncio.Queue()

    async def process(self, callback):
        message = dingtalk_stream.ChatbotMessage.from_dict(callback.data)
        await self.received.put(message)
        return dingtalk_stream.AckMessage.STATUS_OK, "OK"


async def next_message(handler):
    return await asyncio.wait_for(handler.received.get(), 10)


async def scenario(client, handler, control):
    pings = await control.wait_calls("ack ping", 1)
    assert pings[0]["error"] == 0, pings

    # Messages of every kind, and their acknowledgements.
    await control.post("message", {"body": {"text": " hello"}})
    message = await next_message(handler)
    assert message.text.content == " hello" and message.conversation_type == "1"
    picture = {"picture": "aGVsbG8="}
    await control.post("message", {"group": GROUP, "body": picture})
    group = await next_message(handler)
    assert group.conversation_type == "2" and group.conversation_id == GROUP
    rich = {"rich_text": {"text": "see", "base64": "aGVsbG8="}}
    await control.post("message", {"body": rich})
    assert (await next_message(handler)).get_text_list() == ["see"]
    await control.wait_calls("ack message", 3)
    assert (await control.get("state"))["waiting"] == 0

    # Downloads.
    code = group.get_image_list()[0]
    url = await asyncio.to_thread(handler.get_image_download_url, code)
    async with control.http.get(url) as answer:
        assert await answer.read() == b"hello"

    # Cards.
    for incoming in (message, group):
        replier = dingtalk_stream.AICardReplier(client, incoming)
        card = await replier.async_create_and_deliver_card(TEMPLATE, {"content": ""})
        assert card
        for text, finished in (("One", False), ("One two", True)):
            await replier.async_streaming(card, "content", text, False, finished, False)
    cards = (await control.get("state"))["cards"]
    spaces = {"dtv1.card//IM_ROBOT.u1", f"dtv1.card//IM_GROUP.{GROUP}"}
    assert {card[0] for card in cards} == spaces, cards
    assert all(card[1:] == ["One two", True] for card in cards), cards
    refused = [call for call in await control.get("calls") if call["error"] not in (0, -1)]
    assert refused == [], refused

    # The end of a connection that the platform announces.
    await control.post("command", {"do": "disconnect"})
    ends = await control.wait_calls("ack disconnect", 1)
    assert ends[0]["error"] == 0, ends
    await control.wait_calls("open", 2)
    await control.post("message", {"body": {"text": "later"}})
    assert (await next_message(handler)).text.content == "later"
    await control.wait_calls("ack message", 4)


async def main():
    for module in (card_replier, chatbot, stream):
        module.DINGTALK_OPENAPI_ENDPOINT = BASE
    open_address = f"{BASE}/v1.0/gateway/connections/open"
    dingtalk_stream.DingTalkStreamClient.OPEN_CONNECTION_API = open_address
    client = dingtalk_stream.DingTalkStreamClient(dingtalk_stream.Credential("client", "secret"))
    handler = Handler()
    client.register_callback_handler(dingtalk_stream.ChatbotMessage.TOPIC, handler)
    async with aiohttp.ClientSession() as http:
        running = asyncio.create_task(client.start())
        await asyncio.wait_for(scenario(client, handler, Control(http)), 60)
        assert not running.done()


async def judge():
    status = 1
    try:
        await main()
        print("dingtalk-stream agrees with the fake", flush=True)
        status = 0
    except BaseException:
        traceback.print_exc()
    # The client ignores cancellation.
    os._exit(status)


asyncio.run(judge())
