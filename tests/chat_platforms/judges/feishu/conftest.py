"""Fakes of Feishu for the judges: one process per test."""

import os
import subprocess
import time

import httpx
import pytest


class Fake:
    """Process of the fake, with its control routes."""

    def __init__(self):
        self.process = subprocess.Popen(
            [os.environ["CHAT_PLATFORM"], "feishu"], stdout=subprocess.PIPE, text=True
        )
        self.base = self.process.stdout.readline().strip()
        self.control = httpx.Client(base_url=f"{self.base}/_fake/", trust_env=False)

    def post(self, path, **body):
        answer = self.control.post(path, json=body)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def get(self, path):
        answer = self.control.get(path)
        answer.raise_for_status()
        return answer.json()

    def write(self, text="hello", chat="oc_1", direct=True, **more):
        body = {
            "chat_id": chat,
            "sender": "ou_1",
            "direct": direct,
            "msg_type": "text",
            "content": {"text": text},
        } | more
        return self.post("feishu/write", **body)["message_id"]

    def calls(self, method):
        return [call for call in self.get("calls") if call["method"] == method]

    def status(self):
        return self.get("feishu/status")

    def visible(self):
        messages = self.get("feishu/messages")
        return [found["visible"] for found in messages if found["message"]["by_bot"]]

    def wait(self, found, seconds=20):
        """Waits until a condition of the status holds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            status = self.status()
            if found(status):
                return status
            time.sleep(0.02)
        raise AssertionError(f"the condition does not hold: {status}")

    def close(self):
        self.control.close()
        self.process.terminate()
        self.process.wait(10)
        self.process.stdout.close()


@pytest.fixture
def fake():
    fake = Fake()
    yield fake
    fake.close()
