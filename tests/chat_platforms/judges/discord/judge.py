"""Runs discord.py against the fake of Discord and checks that both agree."""

import asyncio
import io
import logging
import sys

import aiohttp
import discord
import discord.gateway
import discord.http
import yarl

BASE = sys.argv[1]
CHANNEL, DIRECT, PERSON = 20, 10, 7


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

    async def calls(self, method):
        return [call for call in await self.get("calls") if call["method"] == method]


class Client(discord.Client):
    """Client that queues what it receives."""

    def __init__(self):
        intents = discord.Intents.default()
        intents.message_content = True
        super().__init__(intents=intents, allowed_mentions=discord.AllowedMentions.none())
        self.received = asyncio.Queue()
        self.pressed = asyncio.Queue()
        self.resumed = asyncio.Event()
        self.greeted = asyncio.Event()

    async def on_ready(self):
        self.greeted.set()

    async def on_resumed(self):
        self.resumed.set()

    async def on_message(self, message):
        if message.author.id != self.user.id:
            await self.received.put(message)

    async def on_interaction(self, interaction):
        await interaction.response.defer()
        await self.pressed.put(interaction)


async def next_message(client, text):
    message = await asyncio.wait_for(client.received.get(), 10)
    assert message.content == text, (message.content, text)
    return message


async def scenario(client, control):
    await asyncio.wait_for(client.greeted.wait(), 15)
    assert client.user.id == 1
    guild = client.get_guild(1000)
    assert guild is not None and guild.get_channel(CHANNEL) is not None

    await control.post("message", {"channel": CHANNEL, "text": "<@1> hello"})
    message = await next_message(client, "<@1> hello")
    assert client.user in message.mentions and message.guild.id == 1000

    # Replies, edits, typing and reactions.
    async with message.channel.typing():
        sent = await message.channel.send(
            "answer", nonce="n-1", reference=message, mention_author=False
        )
    again = await message.channel.send("answer", nonce="n-1")
    assert again.id == sent.id, "the nonce is recognized"
    await sent.edit(content="edited")
    await message.add_reaction("\N{WHITE HEAVY CHECK MARK}")
    try:
        await message.channel.send("x" * 2001)
        raise AssertionError("2001 characters were accepted")
    except discord.HTTPException as error:
        assert error.status == 400 and error.code == 50035, error

    # Threads.
    thread = await message.create_thread(name="a thread")
    assert thread.id == message.id and thread.parent_id == CHANNEL
    await thread.send("in the thread")

    # Files in both directions.
    sent = await message.channel.send(file=discord.File(io.BytesIO(b"bytes"), "a.txt"))
    assert await sent.attachments[0].read() == b"bytes"
    history = [entry async for entry in message.channel.history(after=message, limit=10)]
    assert [entry.content for entry in history] == ["edited", ""], history

    # Buttons.
    view = discord.ui.View()
    view.add_item(discord.ui.Button(label="Yes", custom_id="yes"))
    sent = await message.channel.send("Go on?", view=view)
    await control.post("press", {"message": sent.id, "custom_id": "yes", "person": PERSON})
    interaction = await asyncio.wait_for(client.pressed.get(), 10)
    assert interaction.data["custom_id"] == "yes" and interaction.user.id == PERSON

    # Rate limits: the library waits and repeats.
    limited = [{"rate_limited": {"retry_after": 0.3}}]
    await control.post("faults", {"create_message": limited})
    direct = client.get_partial_messageable(DIRECT)
    await direct.send("after the limit")
    calls = await control.calls("create_message")
    assert [call["error"] for call in calls[-2:]] == [429, 0], calls[-2:]

    # Direct messages and resumed sessions.
    await control.post("message", {"channel": DIRECT, "in_guild": False, "text": "direct"})
    message = await next_message(client, "direct")
    assert message.guild is None
    await control.post("command", {"do": "reconnect"})
    await control.post("message", {"channel": CHANNEL, "text": "missed"})
    await next_message(client, "missed")
    await asyncio.wait_for(client.resumed.wait(), 20)
    assert len(await control.calls("gateway resume")) == 1
    assert len(await control.calls("gateway identify")) == 1
    assert await control.get("violations") == []


async def refused(options_token):
    client = discord.Client(intents=discord.Intents.none())
    try:
        await client.start(options_token)
        raise AssertionError("a wrong token was accepted")
    except discord.LoginFailure:
        pass
    finally:
        await client.close()


async def main():
    discord.http.Route.BASE = f"{BASE}/api/v10"
    socket = BASE.replace("http", "ws", 1)
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(f"{socket}/gateway")
    await refused("WRONG")
    client = Client()
    async with aiohttp.ClientSession() as http:
        running = asyncio.create_task(client.start("TOKEN"))
        checking = asyncio.create_task(scenario(client, Control(http)))
        done, _ = await asyncio.wait({running, checking}, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        assert checking in done, "the client ended early"
        await client.close()
    print("discord.py agrees with the fake")


logging.basicConfig(level=logging.ERROR)
asyncio.run(asyncio.wait_for(main(), 90))
