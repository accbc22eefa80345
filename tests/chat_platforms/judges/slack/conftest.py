"""The fake as a process, and the clients of slack_sdk."""

import json
import os
import queue
import subprocess
import time
import urllib.request

import pytest
from slack_sdk import WebClient
from slack_sdk.socket_mode import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse


class Fake:
    """Running fake with its control routes."""

    def __init__(self, *arguments):
        command = [os.environ["CHAT_PLATFORM"], "slack", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.base = self.process.stdout.readline().strip()

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def request(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, method=method)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=10) as response:
            text = response.read()
        return json.loads(text) if text else None

    def say(self, channel, text, user="U1", **more):
        body = {"channel": channel, "user": user, "text": text, **more}
        return self.request("POST", "/_fake/say", body)["ts"]

    def options(self, **changes):
        self.request("POST", "/_fake/options", changes)

    def faults(self, **script):
        self.request("POST", "/_fake/faults", {name.replace("__", "."): faults for name, faults in script.items()})

    def calls(self, method):
        return [call for call in self.request("GET", "/_fake/calls") if call["method"] == method]

    def messages(self, channel):
        return self.request("GET", f"/_fake/messages/{channel}")

    def wait_for(self, method, count=1, seconds=15):
        """Polls the record of calls, which is outside of this process."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.calls(method)
            if len(found) >= count:
                return found
            time.sleep(0.02)
        raise AssertionError(f"{count} calls of {method} did not arrive")


@pytest.fixture
def fake():
    running = Fake("--no-rate-limits")
    yield running
    running.stop()


@pytest.fixture
def limited_fake():
    running = Fake()
    yield running
    running.stop()


def web_client(fake, token="xoxb-1"):
    return WebClient(token=token, base_url=f"{fake.base}/api/")


@pytest.fixture
def web(fake):
    return web_client(fake)


class Listener:
    """Socket Mode client that puts its requests into a queue and acknowledges them on demand."""

    def __init__(self, fake, acknowledges=True):
        self.requests = queue.Queue()
        self.acknowledges = acknowledges
        self.client = SocketModeClient(app_token="xapp-1", web_client=web_client(fake), ping_interval=1)
        self.client.socket_mode_request_listeners.append(self.received)

    def received(self, client, request):
        if self.acknowledges:
            client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))
        self.requests.put(request)

    def next(self):
        return self.requests.get(timeout=15)


@pytest.fixture
def listen(fake):
    listeners = []

    def start(**options):
        listener = Listener(fake, **options)
        listener.client.connect()
        listeners.append(listener)
        return listener

    yield start
    for listener in listeners:
        listener.client.close()
