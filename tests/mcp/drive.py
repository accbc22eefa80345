"""Has the scripted model call tools of real MCP servers through a real gateway, over all three transports, and checks the results."""

import contextlib
import http.server
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

SERVERS = pathlib.Path(os.environ["MCP_SERVERS"])
BINARIES = pathlib.Path(os.environ["DEERFLOW_BIN_DIR"])
NODE = SERVERS / "node/node_modules/.bin"
PYTHON = SERVERS / "venv/bin"
TIMEOUT_SECONDS = 120


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def eventually(probe, what):
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if found := probe():
                return found
        time.sleep(0.1)
    raise AssertionError(f"{what} did not happen")


def listens(port):
    with socket.create_connection(("127.0.0.1", port), timeout=1):
        return True


@contextlib.contextmanager
def process(*command, **options):
    child = subprocess.Popen([str(part) for part in command], **options)
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            raise


def ask(method, url, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"}, method=method)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=TIMEOUT_SECONDS) as answer:
        return json.load(answer)


class Gateway:
    def __init__(self, home, url, model):
        self.home, self.url, self.model = home, url, model

    def ask(self, method, path, body=None):
        return ask(method, self.url + path, body)

    def wait_for_tools(self, *tools):
        """Waits until requests to the model offer these tools, because runs do not wait for a slow server."""

        def offered():
            root = self.model.removesuffix("/v1")
            ask("POST", f"{root}/__reset")
            self.results(self.ask("POST", "/api/threads", {})["thread_id"], "nothing to do,")
            # Deferred tools are only listed by name, one per line.
            seen = [(request["tools"], json.dumps(request["messages"])) for request in ask("GET", f"{root}/__log")]
            return all(any(tool in shown or f"\\n{tool}\\n" in said for shown, said in seen) for tool in tools)

        eventually(offered, f"the offer of {', '.join(tools)}")

    def results(self, thread, words):
        """Returns the results of the requested tool calls."""
        body = {"assistant_id": "lead_agent", "input": {"messages": [{"role": "user", "content": f"{words} then say done"}]}}
        values = self.ask("POST", f"/api/threads/{thread}/runs/wait", body)
        asked = max(at for at, message in enumerate(values["messages"]) if message["type"] == "human")
        return [message for message in values["messages"][asked:] if message["type"] == "tool"]

    def call(self, tool, thread=None, **arguments):
        thread = thread or self.ask("POST", "/api/threads", {})["thread_id"]
        [result] = self.results(thread, f"[[tool:{tool} {json.dumps(arguments)}]]")
        return result


def text(result):
    content = result["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


@contextlib.contextmanager
def gateway(model, servers, sections=""):
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        (home / "config.yaml").write_text(
            "config_version: 34\n"
            f"models: [{{name: fake, use: openai, model: scripted-1, api_key: k, base_url: '{model}'}}]\n"
            f"memory: {{enabled: false}}\nruns: {{shutdown_grace_seconds: 2}}\n{sections}"
        )
        (home / "extensions_config.json").write_text(json.dumps({"mcpServers": servers}))
        port = free_port()
        own = {"DEER_FLOW_PROJECT_ROOT": folder, "DEER_FLOW_HOME": str(home / ".deer-flow"), "DEER_FLOW_AUTH_DISABLED": "1", "NO_PROXY": "127.0.0.1"}
        environment = {**os.environ, **own, "GATEWAY_PORT": str(port), "SECRET_WORD": "canary-word"}
        with (home / "log").open("w") as log, process(BINARIES / "deerflow", "serve", cwd=home, env=environment, stderr=log):
            try:
                eventually(lambda: listens(port), "the start of the gateway")
                yield Gateway(home, f"http://127.0.0.1:{port}", model)
            except BaseException:
                log.flush()
                print((home / "log").read_text()[-8000:], file=sys.stderr)
                raise


def process_servers(shared):
    everything = {"command": str(NODE / "mcp-server-everything"), "args": ["stdio"], "env": {"WORD": "$SECRET_WORD"}}
    return {
        "files": {"command": str(NODE / "mcp-server-filesystem"), "args": [str(shared)]},
        "everything": everything,
        "time": {"command": str(PYTHON / "mcp-server-time"), "args": ["--local-timezone", "UTC"]},
        "fetch": {"command": str(PYTHON / "mcp-server-fetch"), "args": ["--ignore-robots-txt", "--allow-private-ips"]},
        "absent": {"command": str(NODE / "no-such-server")},
    }


def files_are_read_and_written(gateway, shared):
    (shared / "note.txt").write_text("from outside")
    assert "from outside" in text(gateway.call("files_read_text_file", path=str(shared / "note.txt")))
    gateway.call("files_write_file", path=str(shared / "made.txt"), content="by the agent")
    assert (shared / "made.txt").read_text() == "by the agent"
    refused = gateway.call("files_read_text_file", path="/etc/hostname")
    assert refused["status"] == "error" and text(refused).startswith("Error:"), refused


def every_kind_of_result_is_read(gateway):
    assert text(gateway.call("everything_echo", message="hello")) == "Echo: hello"
    assert "12" in text(gateway.call("everything_get-sum", a=5, b=7))
    image = gateway.call("everything_get-tiny-image")
    assert any(block["type"] == "image" and block["base64"] for block in image["content"]), image
    structured = gateway.call("everything_get-structured-content", location="New York")
    assert "temperature" in structured["artifact"]["structured_content"], structured
    refused = gateway.call("everything_get-sum", a="five", b=7)
    assert refused["status"] == "error", refused
    assert "canary-word" in text(gateway.call("everything_get-env")), "a server has its own variables"
    assert "DEER_FLOW_HOME" not in text(gateway.call("everything_get-env")), "and not the gateway's"


def times_are_converted(gateway):
    assert "UTC" in text(gateway.call("time_get_current_time", timezone="UTC"))
    assert "2" in text(gateway.call("time_convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"))


def pages_are_fetched(gateway):
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<html><body><h1>Deer</h1><p>" + b"grass " * 200 + b"</p></body></html>")

        def log_message(self, *_):
            pass

    page = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=page.serve_forever, daemon=True).start()
    fetched = text(gateway.call("fetch_fetch", url=f"http://127.0.0.1:{page.server_port}/"))
    page.shutdown()
    assert "grass grass" in fetched, fetched


def deferred_tools_are_found_by_search(gateway):
    thread = gateway.ask("POST", "/api/threads", {})["thread_id"]
    found, said = gateway.results(thread, '[[tool:tool_search {"query": "select:everything_echo"}]] [[tool:everything_echo {"message": "found"}]]')
    assert json.loads(text(found))[0]["name"] == "everything_echo" and text(said) == "Echo: found", (found, said)
    assert text(gateway.call("everything_echo", thread, message="again")) == "Echo: again", "the server keeps its session with the thread"


def configuration_changes(gateway, shared):
    shown = gateway.ask("GET", "/api/mcp/config")
    assert shown["mcp_servers"]["everything"]["env"] == {"WORD": "***"}, shown
    del shown["mcp_servers"]["time"]
    gateway.ask("PUT", "/api/mcp/config", shown)
    gone = gateway.results(gateway.ask("POST", "/api/threads", {})["thread_id"], "[[ghost:time_get_current_time {}]]")
    assert "is not a tool" in text(gone[0]), gone
    gateway.wait_for_tools("everything_get-env")
    assert "canary-word" in text(gateway.call("everything_get-env"))


def children(pid):
    """Returns the descendants of a process, as the kernel reports them."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rsplit(") ", 1)[1].split()[1]) == pid:
                found.append(int(stat.parent.name))
                found.extend(children(found[-1]))
    return found


def is_server(pid):
    with contextlib.suppress(OSError):
        return b"mcp-server" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def over_http(model):
    ports = {"sse": free_port(), "streamableHttp": free_port()}
    with contextlib.ExitStack() as stack:
        for transport, port in ports.items():
            stack.enter_context(process(NODE / "mcp-server-everything", transport, env={**os.environ, "PORT": str(port)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            eventually(lambda: listens(port), f"the start of the server over {transport}")
        servers = {
            "old": {"type": "sse", "url": f"http://127.0.0.1:{ports['sse']}/sse"},
            "new": {"type": "http", "url": f"http://127.0.0.1:{ports['streamableHttp']}/mcp"},
        }
        with gateway(model, servers) as served:
            served.wait_for_tools(*(f"{server}_echo" for server in servers))
            for server in servers:
                assert text(served.call(f"{server}_echo", message="hi")) == "Echo: hi", server
                assert "12" in text(served.call(f"{server}_get-sum", a=5, b=7)), server


def main():
    with process(BINARIES / "scripted-openai", "--strict", stdout=subprocess.PIPE, text=True) as model_process:
        model = model_process.stdout.readline().split()[-1]
        with tempfile.TemporaryDirectory() as shared:
            shared = pathlib.Path(shared).resolve()
            with gateway(model, process_servers(shared)) as served:
                served.wait_for_tools("files_read_text_file", "everything_echo", "time_get_current_time", "fetch_fetch")
                for check in (every_kind_of_result_is_read, times_are_converted, pages_are_fetched):
                    check(served)
                    print("passed", check.__name__.replace("_", " "))
                files_are_read_and_written(served, shared)
                configuration_changes(served, shared)
                print("passed files, configuration")
                left = children(os.getpid())
            with gateway(model, process_servers(shared), "tool_search: {enabled: true}\n") as served:
                served.wait_for_tools("everything_echo")
                deferred_tools_are_found_by_search(served)
                print("passed tool search")
        eventually(lambda: not any(is_server(pid) for pid in left), "the end of all servers")
        over_http(model)
        print("passed both ways over http")


if __name__ == "__main__":
    main()
