"""A gateway with a scripted model behind it, as two child processes."""

import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

BINARIES = Path(os.environ["DEERFLOW_BIN_DIR"])
FLOWS = Path(__file__).parent.parent / "flows"
TIMEOUT = 30.0

CONFIG = """\
config_version: 34
models:
  - name: fake
    use: langchain_openai:ChatOpenAI
    model: scripted-1
    api_key: none
    base_url: {base_url}
    stream_chunk_timeout: 5
tool_groups: [{{name: files}}]
tools:
  - {{name: ls, group: files, use: sandbox.ls}}
  - {{name: write_file, group: files, use: sandbox.write_file}}
sandbox: {{use: local}}
memory: {{enabled: false}}
webhooks: {{allow_private: true}}
database: {{backend: sqlite}}
llm_call: {{retry_base_delay_ms: 1, retry_cap_delay_ms: 2, burst_retry_base_delay_ms: 1}}
"""


class ScriptedModel:
    """The model that follows the directives of the user's message."""

    def __enter__(self):
        program = [BINARIES / "scripted-openai", "--strict"]
        self.process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
        self.base_url = re.search(r"http://\S+", self.process.stdout.readline()).group()
        return self

    def calls(self, word: str, beginning: str = "") -> int:
        """Returns the number of requests whose script has this beginning and contains the word."""
        with urllib.request.urlopen(f"{self.base_url.removesuffix('/v1')}/__log", timeout=TIMEOUT) as log:
            scripts = [request["user"] for request in json.load(log)]
        return sum(word in script and script.startswith(beginning) for script in scripts)

    def release(self, word: str, to: int | None = None):
        """Continues a held answer to its end, or up to a number of pieces."""
        query = f"word={word}" + (f"&to={to}" if to else "")
        urllib.request.urlopen(f"{self.base_url.removesuffix('/v1')}/__release?{query}", timeout=TIMEOUT).close()

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Gateway:
    """The real binary on a free port, with its data in `home`."""

    def __init__(self, home: Path, model_url: str):
        self.home, self.log = home, home / "gateway.log"
        (home / "config.yaml").write_text(CONFIG.format(base_url=model_url))
        shutil.copytree(FLOWS, home / "flows")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        environment = os.environ | {
            "DEER_FLOW_PROJECT_ROOT": str(self.home),
            "DEER_FLOW_CONFIG_PATH": str(self.home / "config.yaml"),
            "DEER_FLOW_HOME": str(self.home / ".deer-flow"),
            "DEER_FLOW_AUTH_DISABLED": "1",
            "GATEWAY_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(self.port),
            "NO_PROXY": "127.0.0.1",
        }
        with self.log.open("wb") as log:
            program = [BINARIES / "deerflow", "serve"]
            self.process = subprocess.Popen(program, cwd=self.home, env=environment, stdout=log, stderr=log)
        eventually(self._healthy, "the gateway")
        return self

    def _healthy(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{self.url}/health", timeout=2):
                return True
        except OSError:
            return False

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def eventually(ask, what: str, within: float = TIMEOUT):
    """Polls until the result is true: another process can only be polled."""
    end = time.monotonic() + within
    while not (answer := ask()):
        assert time.monotonic() < end, f"waited too long for {what}"
        time.sleep(0.02)
    return answer
