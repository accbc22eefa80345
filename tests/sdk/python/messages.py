"""Builders and readers of messages."""

import json

REPORT = "/mnt/user-data/outputs/report.md"
MODES = ["values", "messages-tuple", "updates", "custom"]


def user(words: str) -> dict:
    return {"messages": [{"role": "user", "content": words}]}


def call(tool: str, **arguments) -> str:
    return f"[[tool:{tool} {json.dumps(arguments)}]]"


WRITE_A_REPORT = (
    "Write a report "
    + call("write_file", description="write", path=REPORT, content="# R\n")
    + call("present_files", filepaths=[REPORT])
    + " then say It is done."
)


def words(message: dict) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def visible_messages(values: dict) -> list[tuple[str, str]]:
    """Returns the messages that a user sees."""
    hidden = lambda message: message["type"] == "system" or message.get("additional_kwargs", {}).get("hide_from_ui")
    return [(message["type"], words(message)) for message in values.get("messages", []) if not hidden(message)]


def tokens(parts) -> str:
    """Returns the text of all streamed chunks."""
    pairs = [part.data for part in parts if part.event == "messages"]
    return "".join(words(message) for message, _ in pairs if message["type"] == "AIMessageChunk")


def counted(pieces: int) -> str:
    """Returns the text that `[[slow {pieces}x..]]` streams."""
    return "".join(f"tok{n} " for n in range(pieces))
