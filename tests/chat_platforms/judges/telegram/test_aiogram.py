"""aiogram against the fake: drafts with a stop button, rich messages, and the rest in brief."""

import asyncio

import pytest
from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import TelegramBadRequest, TelegramNotFound, TelegramRetryAfter
from aiogram.types import BufferedInputFile, InputRichMessage, ReplyParameters

from conftest import TOKEN


def with_bot(fake, scenario):
    """Runs a scenario with a bot whose addresses are the fake's."""

    async def run():
        session = AiohttpSession(api=TelegramAPIServer.from_base(fake.base))
        async with Bot(TOKEN, session=session) as bot:
            await scenario(bot)

    asyncio.run(asyncio.wait_for(run(), 30))


def test_stop_of_a_draft_is_an_update(fake):
    fake.say(42, "hello")

    async def scenario(bot):
        await bot.send_message_draft(42, 7, text="Hel", can_stop=True, keep_on_stop=True)
        assert fake.post("stop", chat=42)["stopped"]
        stopped = (await bot.get_updates(offset=-1))[0].stopped_message_generation
        assert (stopped.chat.id, stopped.draft_id) == (42, 7)
        with pytest.raises(TelegramBadRequest):
            await bot.send_message_draft(-1001, 7, text="Hel")

    with_bot(fake, scenario)


def test_rich_message_is_sent(fake):
    fake.say(42, "hello")

    async def scenario(bot):
        sent = await bot.send_rich_message(42, InputRichMessage(html="<b>x</b>"))
        assert sent.message_id

    with_bot(fake, scenario)


def test_messages_files_and_limits_work(fake):
    asked = fake.say(42, "hello")

    async def scenario(bot):
        me = await bot.get_me()
        assert me.username == "deer_bot"
        (update,) = await bot.get_updates()
        assert update.message.text == "hello"
        reply = ReplyParameters(message_id=asked)
        sent = await bot.send_message(42, "<i>x</i>", parse_mode="HTML", reply_parameters=reply)
        assert sent.reply_to_message.message_id == asked
        await bot.edit_message_text("y", chat_id=42, message_id=sent.message_id)
        sent = await bot.send_document(42, BufferedInputFile(b"abc", filename="a.txt"))
        file = await bot.get_file(sent.document.file_id)
        assert (await bot.download_file(file.file_path)).read() == b"abc"
        fake.fault("sendMessage", {"rate_limited": {"retry_after": 3}})
        with pytest.raises(TelegramRetryAfter) as limited:
            await bot.send_message(42, "x")
        assert limited.value.retry_after == 3

    with_bot(fake, scenario)


def test_unknown_method_is_not_found(fake):
    async def scenario(bot):
        with pytest.raises(TelegramNotFound):
            await bot.send_poll(42, "x", ["a", "b"])

    with_bot(fake, scenario)
