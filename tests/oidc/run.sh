#!/usr/bin/env bash
# Sign-in through identity providers and through proxies, in a real browser against real gateways: a certified OIDC server and a mock,
# on SQLite and on two nodes over Postgres and Redis; nginx alone and behind a second one with TLS. See tests/external.sh for the environment.
#   CHROMIUM  the browser: /usr/bin/chromium by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
: "${DEERFLOW_BIN_DIR:?}" "${OIDC_PYTHON:?}"
source ../servers.sh
start_postgres
start_redis
(($# > 0)) || set -- providers.test.mjs proxies.test.mjs
node --test --test-concurrency=1 "$@"
