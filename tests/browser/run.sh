#!/usr/bin/env bash
# The official React hook in a real browser, on a page of another origin, against a real gateway; see tests/external.sh for
# the environment.
#   CHROMIUM  the browser: /usr/bin/chromium unless told otherwise
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
: "${DEERFLOW_BIN_DIR:?}"
exec node --test "$@" hook.test.mjs
