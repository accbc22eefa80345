#!/usr/bin/env bash
# Tests in a real browser against a real gateway: the official React hooks, classic and of the
# streaming protocol, on a page of another origin, and files of a thread;
# see tests/external.sh for the environment.
#   CHROMIUM  the browser: /usr/bin/chromium by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
: "${DEERFLOW_BIN_DIR:?}"
exec node --test "$@" hook.test.mjs protocol.test.mjs protocol_breaks.test.mjs media.test.mjs
