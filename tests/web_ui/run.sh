#!/usr/bin/env bash
# Tests of DeerFlow's web UI, unchanged, in a real browser against a real gateway: `UI=<folder> run.sh [test file ..]`.
#   UI                folder `frontend` of a checkout of DeerFlow; its packages are installed and it is built if needed
#   DEERFLOW_BIN_DIR  folder with the binaries of the workspace; they are built if it is not set
#   CHROMIUM          the browser: /usr/bin/chromium by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
: "${UI:?the folder \`frontend\` of a checkout of DeerFlow}"
# The UI's build contains the address of its gateway.
export UI_GATEWAY_PORT=${UI_GATEWAY_PORT:-8011} UI_PORT=${UI_PORT:-3011}
address=http://127.0.0.1:$UI_GATEWAY_PORT

if ! grep --quiet --fixed-strings "$address/" "$UI/.next/routes-manifest.json" 2>/dev/null; then
    command -v pnpm >/dev/null || npm install --global "pnpm@$(node --print "require('$UI/package.json').packageManager.split('@')[1].split('+')[0]")"
    (
        cd "$UI"
        pnpm install --frozen-lockfile
        SKIP_ENV_VALIDATION=1 NEXT_TELEMETRY_DISABLED=1 DEER_FLOW_INTERNAL_GATEWAY_BASE_URL=$address pnpm build
    )
fi
[[ -d ../browser/node_modules ]] || npm install --prefix ../browser --no-audit --no-fund --no-package-lock --loglevel=error
if [[ -z ${DEERFLOW_BIN_DIR:-} ]]; then
    (cd ../.. && cargo build --workspace --bins)
    DEERFLOW_BIN_DIR=$(cd ../.. && cd "${CARGO_TARGET_DIR:-target}" && pwd)/debug
    export DEERFLOW_BIN_DIR
fi
(($# > 0)) || set -- ./*.test.mjs
exec node --test --test-concurrency=1 "$@"
