#!/usr/bin/env bash
# Real MCP servers from npm and PyPI, driven through the gateway by the scripted model; see tests/external.sh for the environment.
# They are installed into the target folder, in these versions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
servers=$(cd ../.. && mkdir -p "${CARGO_TARGET_DIR:-target}/mcp" && cd "${CARGO_TARGET_DIR:-target}/mcp" && pwd)

npm install --prefix "$servers/node" --no-audit --no-fund --no-package-lock --loglevel=error \
    @modelcontextprotocol/server-filesystem@2026.8.31 @modelcontextprotocol/server-everything@2026.8.31
if [[ ! -x $servers/venv/bin/pip ]]; then
    python3 -m venv --clear "$servers/venv"
fi
"$servers/venv/bin/pip" install --quiet --disable-pip-version-check mcp-server-fetch==2026.10.24 mcp-server-time==2026.10.19

exec env PYTHONDONTWRITEBYTECODE=1 MCP_SERVERS="$servers" python3 drive.py "$@"
