"""client.threads.stream() through a proxy that resets connections in the middle of events, or is slow."""

import asyncio
import random
import uuid

import pytest
from langgraph_sdk import get_client

from messages import counted, user, visible_messages
from rig import TIMEOUT
from rough_proxy import RoughProxy

# Sizes of the events are between 150 and 250 bytes.
MOST_BYTES = 600
PIECES = 40
STEP = 5

transports = pytest.mark.parametrize("transport", ["sse", "websocket"])
speeds = pytest.mark.parametrize("slow", [False, True], ids=["fast", "slow"])


def run(work):
    return asyncio.run(asyncio.wait_for(work, TIMEOUT))


def opened(url, transport):
    return get_client(url=url, api_key=None).threads.stream(assistant_id="lead_agent", transport=transport)


@transports
@speeds
def test_text_is_whole_though_connections_break_in_mid_word(gateway, model, transport, slow):
    word, places = uuid.uuid4().hex[:8], random.Random(3)

    async def read(message, proxy):
        text, shown = "", STEP
        async for piece in message.text:
            text += piece
            assert counted(PIECES).startswith(text)
            if text == counted(shown) and shown < PIECES:
                # All that was published has arrived, so the cut is in what follows.
                shown += STEP
                proxy.cut_after(places.randint(1, MOST_BYTES))
                await asyncio.to_thread(model.release, word, None if shown == PIECES else shown)
        return text

    async def work(proxy):
        async with opened(proxy.url, transport) as thread:
            await thread.run.start(input=user(f"[[slow {PIECES}x1ms]][[hold {STEP} {word}]]"))
            readers = [asyncio.create_task(read(message, proxy)) async for message in thread.messages]
            (text,) = await asyncio.gather(*readers)
            return text, await thread.output

    with RoughProxy(gateway.port, slow) as proxy:
        text, output = run(work(proxy))
        assert proxy.cuts >= 4
    assert text == counted(PIECES)
    assert visible_messages(output)[-1] == ("ai", counted(PIECES))


@transports
def test_characters_of_several_bytes_arrive_whole(gateway, transport):
    async def read(message):
        return "".join([piece async for piece in message.text])

    async def work(proxy):
        async with opened(proxy.url, transport) as thread:
            await thread.run.start(input=user("then say Größe 漢字 🦌 €"))
            readers = [asyncio.create_task(read(message)) async for message in thread.messages]
            return await asyncio.gather(*readers), await thread.output

    with RoughProxy(gateway.port, slow=True) as proxy:
        texts, output = run(work(proxy))
    assert texts == ["Größe 漢字 🦌 €"]
    assert visible_messages(output)[-1] == ("ai", "Größe 漢字 🦌 €")
