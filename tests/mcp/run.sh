#!/usr/bin/env bash
# Real MCP servers from npm and PyPI, driven through the gateway by the scripted model, and the agent served to the official Python
# SDK; see tests/external.sh for the environment. Servers and SDK are installed into the target folder, in these versions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
servers=$(cd ../.. && mkdir -p "${CARGO_TARGET_DIR:-target}/mcp" && cd "${CARGO_TARGET_DIR:-target}/mcp" && pwd)

npm install --prefix "$servers/node" --no-audit --no-fund --no-package-lock --loglevel=error \
    @modelcontextprotocol/server-filesystem@2026.8.31 @modelcontextprotocol/server-everything@2026.8.31
if [[ ! -x $servers/venv/bin/pip ]]; then
    python3 -m venv --clear "$servers/venv"
fi
"$servers/venv/bin/pip" install --quiet --disable-pip-version-check mcp==2.3.0 \
    mcp-server-fetch==2026.10.24 mcp-server-time==2026.10.19

export PYTHONDONTWRITEBYTECODE=1 MCP_SERVERS="$servers"
"$servers/venv/bin/python" serve.py
exec python3 drive.py "$@"
