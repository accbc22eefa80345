"""python-telegram-bot against the fake: the fake is right if the SDK understands its answers."""

import asyncio

import pytest
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, InputFile
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, RetryAfter
from telegram.ext import ApplicationBuilder, MessageHandler, filters

from conftest import TOKEN

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


def with_bot(fake, scenario, token=TOKEN):
    """Runs a scenario with a bot whose addresses are the fake's."""

    async def run():
        bot = Bot(token, base_url=f"{fake.base}/bot", base_file_url=f"{fake.base}/file/bot")
        async with bot:
            await scenario(bot)

    asyncio.run(asyncio.wait_for(run(), 30))


def test_bot_is_identified(fake):
    async def scenario(bot):
        assert (bot.id, bot.username) == (123456, "deer_bot")
        assert bot.bot.can_read_all_group_messages is False

    with_bot(fake, scenario)


def test_invalid_token_is_refused(fake):
    async def scenario(bot):
        pass

    with pytest.raises(InvalidToken):
        with_bot(fake, scenario, token="9:wrong")


def test_updater_receives_and_confirms_updates(fake):
    topic = fake.post("topic", chat=-1001)["topic"]
    fake.say(42, "hello")
    fake.say(-1001, "@deer_bot hi", topic=topic)
    seen = []

    async def run():
        enough = asyncio.Event()

        async def on_message(update, _context):
            seen.append(update.message)
            if len(seen) == 2:
                enough.set()

        application = (
            ApplicationBuilder()
            .token(TOKEN)
            .base_url(f"{fake.base}/bot")
            .base_file_url(f"{fake.base}/file/bot")
            .build()
        )
        application.add_handler(MessageHandler(filters.ALL, on_message))
        async with application:
            await application.start()
            await application.updater.start_polling(allowed_updates=["message"])
            await enough.wait()
            await application.updater.stop()
            await application.stop()

    asyncio.run(asyncio.wait_for(run(), 30))
    assert [message.text for message in seen] == ["hello", "@deer_bot hi"]
    assert seen[1].message_thread_id == topic
    assert seen[1].is_topic_message and seen[1].chat.is_forum
    assert seen[1].entities[0].type == "mention"
    assert fake.get("state")["unconfirmed"] == 0
    first, last = fake.calls("getUpdates")[0], fake.calls("getUpdates")[-1]
    assert first["body"]["allowed_updates"] == ["message"]
    assert last["body"]["offset"] == "102"


def test_unconfirmed_updates_return(fake):
    fake.say(42, "one")

    async def scenario(bot):
        for _ in range(2):
            (update,) = await bot.get_updates()
            assert update.message.text == "one"
        assert await bot.get_updates(offset=update.update_id + 1) == ()

    with_bot(fake, scenario)


def test_messages_are_sent_as_recorded(fake):
    asked = fake.say(42, "hello")
    topic = fake.post("topic", chat=-1001)["topic"]

    async def scenario(bot):
        sent = await bot.send_message(42, "Working on it...", reply_to_message_id=asked)
        assert sent.reply_to_message.text == "hello"
        sent = await bot.send_message(-1001, "<b>hi</b>", message_thread_id=topic, parse_mode="HTML")
        assert sent.text_html == "<b>hi</b>"
        with pytest.raises(BadRequest, match="to be replied not found"):
            await bot.send_message(42, "x", reply_to_message_id=999)
        await bot.send_message(42, "x", reply_to_message_id=999, allow_sending_without_reply=True)
        with pytest.raises(BadRequest, match="thread not found"):
            await bot.send_message(-1001, "x", message_thread_id=999)

    with_bot(fake, scenario)
    bodies = [call["body"] for call in fake.calls("sendMessage")]
    assert bodies[0] == {
        "chat_id": "42",
        "text": "Working on it...",
        "reply_parameters": {"message_id": asked},
    }
    assert bodies[1] == {
        "chat_id": "-1001",
        "text": "<b>hi</b>",
        "message_thread_id": str(topic),
        "parse_mode": "HTML",
    }


def test_texts_are_checked(fake):
    fake.say(42, "hello")

    async def scenario(bot):
        await bot.send_message(42, "😀" * 2048)
        with pytest.raises(BadRequest, match="too long"):
            await bot.send_message(42, "😀" * 2048 + "x")
        with pytest.raises(BadRequest, match="(?i)can't parse entities"):
            await bot.send_message(42, "<h1>x</h1>", parse_mode="HTML")
        with pytest.raises(BadRequest, match="(?i)chat not found"):
            await bot.send_message(43, "x")

    with_bot(fake, scenario)


def test_edits_are_checked(fake):
    asked = fake.say(42, "hello")

    async def scenario(bot):
        sent = await bot.send_message(42, "Hel")
        edited = await sent.edit_text("Hello")
        assert (edited.message_id, edited.text) == (sent.message_id, "Hello")
        with pytest.raises(BadRequest, match="not modified"):
            await sent.edit_text("Hello")
        with pytest.raises(BadRequest, match="can't be edited"):
            await bot.edit_message_text("x", chat_id=42, message_id=asked)
        with pytest.raises(BadRequest, match="to edit not found"):
            await bot.edit_message_text("x", chat_id=42, message_id=999)

    with_bot(fake, scenario)


def test_draft_is_shown_and_ends_with_the_message(fake):
    fake.say(42, "hello")

    async def scenario(bot):
        await bot.send_message_draft(42, 7, "Hel")
        assert fake.get("draft?chat=42")["text"] == "Hel"
        await bot.send_message(42, "Hello")
        assert fake.get("draft?chat=42") is None

    with_bot(fake, scenario)
    assert fake.calls("sendMessageDraft")[0]["body"] == {
        "chat_id": "42",
        "draft_id": "7",
        "text": "Hel",
    }


def test_files_go_both_ways(fake):
    fake.send_file(42, b"content", name="in.txt", media_type="text/plain")
    fake.send_file(42, PNG, photo=True)
    fake.send_file(42, b"x", name="big.bin", media_type="a/b", size=21 * 1024 * 1024)

    async def scenario(bot):
        document, photo, big = [update.message for update in await bot.get_updates()]
        assert document.document.file_name == "in.txt"
        file = await document.document.get_file()
        assert bytes(await file.download_as_bytearray()) == b"content"
        file = await photo.photo[-1].get_file()
        assert bytes(await file.download_as_bytearray()) == PNG
        with pytest.raises(BadRequest, match="too big"):
            await big.document.get_file()
        sent = await bot.send_document(42, InputFile(b"abc", filename="a.txt"), caption="look")
        assert (sent.document.file_size, sent.caption) == (3, "look")
        assert len((await bot.send_photo(42, PNG)).photo) == 2
        with pytest.raises(BadRequest, match="(?i)image_process_failed"):
            await bot.send_photo(42, b"no image")

    with_bot(fake, scenario)


def test_button_is_pressed_and_answered_once(fake):
    fake.say(42, "hello")

    async def scenario(bot):
        await bot.get_updates(offset=-1)
        keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="yes")]])
        sent = await bot.send_message(42, "Sure?", reply_markup=keyboard)
        fake.post("press", chat=42, message=sent.message_id, data="yes", **{"from": 42})
        query = (await bot.get_updates(offset=-1))[0].callback_query
        assert (query.data, query.message.message_id) == ("yes", sent.message_id)
        assert await query.answer("Thanks")
        with pytest.raises(BadRequest, match="(?i)query is too old"):
            await query.answer()
        keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("No", callback_data="n" * 65)]])
        with pytest.raises(BadRequest, match="(?i)button_data_invalid"):
            await bot.send_message(42, "x", reply_markup=keyboard)

    with_bot(fake, scenario)


def test_rate_limit_is_announced(strict_fake):
    fake = strict_fake
    fake.say(42, "hello")

    async def scenario(bot):
        for index in range(3):
            await bot.send_message(42, f"{index}")
        with pytest.raises(RetryAfter) as limited:
            await bot.send_message(42, "too fast")
        assert limited.value.retry_after in (1, 1.0) or limited.value.retry_after.seconds == 1

    with_bot(fake, scenario)


def test_refusals_have_their_types(fake):
    fake.say(42, "hello")
    fake.say(-5, "@deer_bot hello")
    fake.post("migrate", chat=-5, to=-1005)
    fake.post("block", chat=42, blocked=True)

    async def scenario(bot):
        with pytest.raises(Forbidden, match="blocked"):
            await bot.send_message(42, "x")
        with pytest.raises(ChatMigrated) as migrated:
            await bot.send_message(-5, "x")
        assert migrated.value.new_chat_id == -1005
        updates = await bot.get_updates()
        assert updates[-2].message.migrate_to_chat_id == -1005

    with_bot(fake, scenario)


def test_second_poller_ends_the_first(fake):
    async def scenario(bot):
        older = asyncio.create_task(bot.get_updates(timeout=20))
        while not older.done():
            async with Bot(TOKEN, base_url=f"{fake.base}/bot") as newer:
                await newer.get_updates()
        with pytest.raises(Conflict):
            await older

    with_bot(fake, scenario)


def test_small_calls_are_accepted(fake):
    asked = fake.say(42, "hello")

    async def scenario(bot):
        assert await bot.send_chat_action(42, "typing")
        assert await bot.set_message_reaction(42, asked, "👀")
        assert await bot.set_my_commands([("new", "Start anew")])
        assert (await bot.get_my_commands())[0].command == "new"
        assert await bot.delete_webhook()

    with_bot(fake, scenario)
    assert fake.get("messages?chat=42")[0]["reactions"] == ["👀"]
