"""Fakes of Telegram for the judges: one process per test."""

import base64
import os
import subprocess

import httpx
import pytest

TOKEN = "123456:TEST-token_1"


class Fake:
    """Process of the fake, with its control routes."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [os.environ["CHAT_PLATFORM"], "telegram", *arguments],
            stdout=subprocess.PIPE,
            text=True,
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

    def say(self, chat, text, person=42, **more):
        return self.post("say", chat=chat, **{"from": person}, text=text, **more)["message_id"]

    def send_file(self, chat, content, person=42, **file):
        file["base64"] = base64.b64encode(content).decode()
        return self.post("say", chat=chat, **{"from": person}, file=file)["message_id"]

    def answers(self, chat):
        return [post for post in self.get(f"messages?chat={chat}") if post["by_bot"]]

    def calls(self, method):
        return [call for call in self.get("calls") if call["method"] == method]

    def fault(self, method, *faults):
        self.post("faults", **{method: list(faults)})

    def close(self):
        self.control.close()
        self.process.terminate()
        self.process.wait(10)
        self.process.stdout.close()


@pytest.fixture
def fake():
    fake = Fake("--no-rate-limits")
    yield fake
    fake.close()


@pytest.fixture
def strict_fake():
    fake = Fake()
    yield fake
    fake.close()
