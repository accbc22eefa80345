"""The long connection of the fake, as the client of lark-oapi uses it."""

import asyncio
import logging
import threading

import lark_oapi as lark
import lark_oapi.ws.client as client_module
import pytest
from lark_oapi.event.callback.model.p2_card_action_trigger import P2CardActionTriggerResponse


# The client logs each failed connection after its fake has ended.
logging.getLogger("Lark").disabled = True


class Listener:
    """Client of the SDK in a thread of its own."""

    def __init__(self, fake):
        self.messages = []
        self.presses = []
        self.fail = 0
        builder = lark.EventDispatcherHandler.builder("", "")
        builder = builder.register_p2_im_message_receive_v1(self.on_message)
        builder = builder.register_p2_card_action_trigger(self.on_press)
        self.client = lark.ws.Client(
            "cli_a",
            "secret",
            event_handler=builder.build(),
            domain=fake.base,
            log_level=lark.LogLevel.CRITICAL,
        )
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        client_module.loop = loop
        try:
            self.client.start()
        except Exception:
            # The fake has ended.
            pass

    def on_message(self, event):
        if self.fail > 0:
            self.fail -= 1
            raise RuntimeError("scripted")
        self.messages.append(event.event)

    def on_press(self, event):
        self.presses.append(event.event)
        return P2CardActionTriggerResponse({})


    def stop(self):
        self.client._auto_reconnect = False


@pytest.fixture
def listener(fake):
    listener = Listener(fake)
    yield listener
    listener.stop()


def test_messages_are_acknowledged_in_one_part_and_in_several(fake, listener):
    fake.wait(lambda status: status["connections"] == 1)
    first = fake.write()
    second = fake.write("x" * 150_000)
    status = fake.wait(lambda status: len(status["acks"]) == 2)
    assert [message.message.message_id for message in listener.messages] == [first, second]
    assert [ack["code"] for ack in status["acks"]] == [200, 200]
    assert status["unacknowledged"] == 0
    assert status["violations"] == []
    assert fake.calls("ping")


def test_failed_handler_leaves_the_event_unacknowledged(fake, listener):
    fake.wait(lambda status: status["connections"] == 1)
    listener.fail = 1
    fake.write()
    status = fake.wait(lambda status: len(status["acks"]) == 1)
    assert status["acks"][0]["code"] == 500
    assert status["unacknowledged"] == 1
    assert status["violations"] == []


def test_presses_arrive(fake, listener):
    fake.wait(lambda status: status["connections"] == 1)
    message = fake.write()
    fake.post("feishu/press", message=message, user="ou_1", value={"d": "stop:1"})
    fake.wait(lambda status: len(status["acks"]) == 2)
    press = listener.presses[0]
    assert press.action.value == {"d": "stop:1"}
    assert press.operator.open_id == "ou_1"
    assert press.context.open_message_id == message
    assert fake.status()["violations"] == []


def test_client_connects_again_after_a_refusal_and_a_cut(fake):
    refusal = {"status": 514, "message": "auth failed", "auth_code": 1000040351}
    fake.post("feishu/behaviour", refuse_handshakes=[refusal])
    listener = Listener(fake)
    fake.wait(lambda status: status["connections"] == 1)
    fake.post("feishu/behaviour", cut=True)
    fake.wait(lambda status: status["opened"] == 2)
    fake.write()
    status = fake.wait(lambda status: len(status["acks"]) == 1)
    assert status["acks"][0]["code"] == 200
    listener.stop()
