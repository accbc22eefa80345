"""The vendor's SDK against the fake: the fake is right if the SDK is content with it and sends what was recorded.

CHAT_PLATFORM names the program `chat-platform`.
"""

import asyncio
import base64
import json
import os
import subprocess
import urllib.request

import pytest
from wecom_aibot_sdk import WSClient


class Fake:
    def __init__(self):
        program = os.environ["CHAT_PLATFORM"]
        self.process = subprocess.Popen([program, "wecom"], stdout=subprocess.PIPE, text=True)
        self.base = self.process.stdout.readline().strip()

    def request(self, path, body=None, method=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.base + path, data=data, method=method, headers={"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            text = response.read()
        return json.loads(text) if text else None

    def say(self, content, person="zhangsan", group=None):
        body = {"person": person, "group": group, "content": content}
        return self.request("/_fake/say", body)["req_id"]

    def do(self, command, **fields):
        return self.request("/_fake/do", {"do": command, **fields})["done"]

    def calls(self, method):
        return [call for call in self.request("/_fake/calls") if call["method"] == method]

    def shown(self):
        return self.request("/_fake/shown")["shown"]


@pytest.fixture
def fake():
    fake = Fake()
    yield fake
    fake.process.kill()
    fake.process.wait()


class Quiet:
    def debug(self, *_):
        pass

    info = warn = error = debug


async def connected(fake, **options):
    client = WSClient(
        "bot",
        options.pop("secret", "secret"),
        ws_url=fake.base.replace("http", "ws") + "/",
        logger=Quiet(),
        **options,
    )
    authenticated = asyncio.Event()
    client.on("authenticated", authenticated.set)
    frames = asyncio.Queue()
    client.on("message", frames.put_nowait)
    client.frames = frames
    await client.connect()
    if options.get("max_auth_failure_attempts") is None:
        await asyncio.wait_for(authenticated.wait(), 10)
    return client


async def test_streams_files_and_messages(fake):
    client = await connected(fake)
    req_id = fake.say({"msgtype": "text", "text": {"content": "hello"}})
    frame = await asyncio.wait_for(client.frames.get(), 10)
    assert frame["headers"]["req_id"] == req_id
    assert frame["body"]["from"] == {"userid": "zhangsan"}
    assert frame["body"]["text"]["content"] == "hello"

    await client.reply_stream(frame, "stream-1", "Hel", False)
    await client.reply_stream(frame, "stream-1", "Hello", True)
    with pytest.raises(Exception, match="846608"):
        await client.reply_stream(frame, "stream-1", "too late", True)
    await client.send_message(
        "zhangsan", {"msgtype": "markdown", "markdown": {"content": "**later**"}}
    )
    content = os.urandom(512 * 1024 + 10)
    uploaded = await client.upload_media(content, type="file", filename="a.txt")
    await client.send_media_message("zhangsan", "file", uploaded["media_id"])
    await client.disconnect()

    # The bodies of the recording, with the id of the request in addition.
    assert [call["body"] for call in fake.calls("aibot_respond_msg")][:2] == [
        {
            "req_id": req_id,
            "msgtype": "stream",
            "stream": {"id": "stream-1", "finish": finish, "content": text},
        }
        for finish, text in ((False, "Hel"), (True, "Hello"))
    ]
    assert [message["content"] for message in fake.shown()] == [
        "Hello",
        "**later**",
        uploaded["media_id"],
    ]
    assert len(fake.calls("aibot_upload_media_chunk")) == 2


async def test_encrypted_files(fake):
    client = await connected(fake)
    content = os.urandom(1000)
    offered = fake.request("/_fake/file", {"base64": base64.b64encode(content).decode()})
    fake.say({"msgtype": "file", "file": offered})
    frame = await asyncio.wait_for(client.frames.get(), 10)
    described = frame["body"]["file"]
    downloaded = await client.download_file(described["url"], described["aeskey"])
    assert downloaded["buffer"] == content
    await client.disconnect()


async def test_second_connection_ends_the_first(fake):
    first = await connected(fake)
    ended = asyncio.Event()
    first.on("event.disconnected_event", lambda _: ended.set())
    second = await connected(fake)
    await asyncio.wait_for(ended.wait(), 10)
    fake.say({"msgtype": "text", "text": {"content": "to the second"}})
    await asyncio.wait_for(second.frames.get(), 10)
    await second.disconnect()


async def test_wrong_secret_is_refused(fake):
    client = await connected(fake, secret="wrong", max_auth_failure_attempts=1)
    failed = asyncio.Event()
    client.on("error", lambda _: failed.set())
    await asyncio.wait_for(failed.wait(), 10)


async def test_heartbeats_find_a_silent_connection(fake):
    client = await connected(fake, heartbeat_interval=100, reconnect_interval=50)
    fake.do("ignore_pings", on=True)
    ended = asyncio.Event()
    client.on("disconnected", lambda _: ended.set())
    await asyncio.wait_for(ended.wait(), 10)
    fake.do("ignore_pings", on=False)
    await client.disconnect()
