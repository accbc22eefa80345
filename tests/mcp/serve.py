"""Calls `deerflow mcp` with the official Python SDK, in the current protocol and in the one with a handshake, and checks the results."""

import asyncio
import json
import os
import pathlib
import subprocess
import tempfile

from mcp import Client, StdioServerParameters

BINARIES = pathlib.Path(os.environ["DEERFLOW_BIN_DIR"])
TIMEOUT_SECONDS = 120


def parameters(home):
    own = {"DEER_FLOW_PROJECT_ROOT": str(home), "DEER_FLOW_HOME": str(home / ".deer-flow"), "NO_PROXY": "127.0.0.1"}
    return StdioServerParameters(command=str(BINARIES / "deerflow"), args=["mcp", "--config", str(home / "config.yaml")], env=own)


async def is_used(home, mode):
    progress, logs = [], []

    async def progressed(_number, _total, message):
        progress.append(message)

    async def logged(params):
        logs.append(params.data["tool"])

    async with Client(parameters(home), mode=mode, log_level="info", logging_callback=logged, read_timeout_seconds=TIMEOUT_SECONDS) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"ask", "read_artifact"}, tools
        if mode == "legacy":
            await client.set_logging_level("info")
        write = {"path": "/mnt/user-data/outputs/a.md", "content": "by the agent"}
        present = {"filepaths": [write["path"]]}
        asked = f"[[tool:write_file {json.dumps(write)}]] [[tool:present_files {json.dumps(present)}]] then say It is written."
        # The SDK validates the structured content against the schema that the tool announces.
        first = await client.call_tool("ask", {"message": asked}, progress_callback=progressed)
        answer = first.structured_content
        assert not first.is_error and answer["text"] == "It is written." and answer["artifacts"] == [write["path"]], first
        assert progress and logs[:2] == ["write_file", "write_file"], (progress, logs)
        file = await client.call_tool("read_artifact", {"thread_id": answer["thread_id"], "path": write["path"]})
        assert file.content[0].text == "by the agent", file
        more = await client.call_tool("ask", {"message": "then say More.", "thread_id": answer["thread_id"]})
        assert more.structured_content["text"] == "More.", more
        refused = await client.call_tool("ask", {"message": 5})
        assert refused.is_error and "message" in refused.content[0].text, refused
        print(f"passed asking with protocol {client.protocol_version}")


def main():
    with subprocess.Popen([BINARIES / "scripted-openai", "--strict"], stdout=subprocess.PIPE, text=True) as model, tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        try:
            base_url = model.stdout.readline().split()[-1]
            (home / "config.yaml").write_text(
                "config_version: 34\n"
                f"models: [{{name: fake, use: openai, model: scripted-1, api_key: k, base_url: '{base_url}'}}]\n"
                "tool_groups: [{name: files}]\ntools: [{name: write_file, group: files, use: sandbox.write_file}]\n"
                "sandbox: {use: local}\nmemory: {enabled: false}\n"
            )
            for mode in ("auto", "legacy"):
                asyncio.run(asyncio.wait_for(is_used(home, mode), TIMEOUT_SECONDS))
        finally:
            model.kill()


if __name__ == "__main__":
    main()
