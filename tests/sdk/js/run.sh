#!/usr/bin/env bash
# The official JS SDKs, the web UI's and the newest, against a real gateway, and two with one Postgres and one Redis; see
# tests/external.sh for the environment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
: "${DEERFLOW_BIN_DIR:?}"
source ../../servers.sh
start_postgres
start_redis
node --test "$@" web_ui.test.mjs flows.test.mjs graph.test.mjs protocol.test.mjs protocol_cuts.test.mjs protocol_nodes.test.mjs
