#!/usr/bin/env bash
# Runs the tests that need other software than Rust: the official LangGraph SDKs against a real gateway, the
# conformance suites of the platform's API and of its streaming protocol, the React hooks in a browser, requests made from
# the OpenAPI document, Postgres, Redis, commands in a kernel sandbox, gateways that are killed, MCP servers from npm and
# PyPI, validators for the examples of deploy/, the SDKs of chat platforms against their fakes, and sign-in through OIDC
# servers from npm and PyPI and through nginx.
# Missing software is installed. If that fails, the run lists what is missing and fails: no test is skipped.
#
# The suites are the scripts below. Their environment:
#   DEERFLOW_BIN_DIR  folder with the freshly built binaries of the workspace (`deerflow` and the helpers of tests/bin)
#   SDK_PYTHON        Python with the packages of tests/sdk/python/requirements.txt
#   FUZZ_PYTHON       Python with the packages of tests/openapi/requirements.txt
#   DEPLOY_PYTHON     Python with the packages of tests/deploy/requirements.txt
#   CHANNELS_PYTHON   Python with the packages of tests/chat_platforms/requirements.txt
#   OIDC_PYTHON       Python with the packages of tests/oidc/requirements.txt
# and, for Node, the packages of each package.json below in the `node_modules` next to it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source ./packages.sh

suites=(sdk/python/run.sh sdk/js/run.sh conformance/run.sh conformance/nodes.sh browser/run.sh openapi/run.sh deploy/run.sh
    postgres/run.sh redis/run.sh sandbox/run.sh cluster/run.sh mcp/run.sh
    chat_platforms/run.sh oidc/run.sh)
# The arguments are the suites to run: `tests/external.sh sdk/python redis`. Without arguments all run.
(($# == 0)) || suites=("${@/%//run.sh}")
node_at_least=20
missing=()

# prepare_python FOLDER: creates a virtual environment in the folder, with the packages of its requirements.txt.
prepare_python() {
    local venv=$PWD/$1/.venv
    if [[ ! -x $venv/bin/pip ]]; then
        # Some distributions ship python3 without the module venv.
        python3 -m venv --clear "$venv" ||
            { install_packages python3 python3-venv && python3 -m venv --clear "$venv"; } || return 1
    fi
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$1/requirements.txt"
}

prepare_node() {
    if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
        install_packages nodejs npm || return 1
    fi
    local major
    major=$(node --print 'process.versions.node.split(".")[0]') || return 1
    if ((major < node_at_least)); then
        echo "node has version $major, the SDK needs at least $node_at_least" >&2
        return 1
    fi
    local packages
    for packages in sdk/js conformance/js/sdk-* conformance/v3/js browser oidc; do
        npm install --prefix "$packages" --no-audit --no-fund --no-package-lock --loglevel=error || return 1
    done
}

prepare_browser() {
    [[ -x ${CHROMIUM:-/usr/bin/chromium} ]] || install_packages chromium
}

prepare_postgres() {
    [[ -n $(postgres_bindir) ]] || install_packages postgresql
}

prepare_redis() {
    command -v redis-server >/dev/null || install_packages redis-server
}

prepare_nginx() {
    command -v openssl >/dev/null && { command -v nginx >/dev/null || [[ -x /usr/sbin/nginx ]]; } || install_packages nginx-light openssl
}

prepare_sandbox() {
    command -v bwrap >/dev/null || install_packages bubblewrap
}

# uses PATTERN: reports whether a suite to run matches the extended regular expression.
uses() {
    printf '%s\n' "${suites[@]}" | grep --quiet --extended-regexp "^($1)/"
}

echo "== preparing"
for folder in sdk/python openapi deploy chat_platforms oidc; do
    # The suites of conformance use the Python SDK.
    users=$folder
    [[ $folder != sdk/python ]] || users='sdk/python|conformance'
    ! uses "$users" || prepare_python "$folder" ||
        missing+=("Python 3 with the packages of tests/$folder/requirements.txt")
done
export SDK_PYTHON=$PWD/sdk/python/.venv/bin/python FUZZ_PYTHON=$PWD/openapi/.venv/bin/python
export DEPLOY_PYTHON=$PWD/deploy/.venv/bin/python CHANNELS_PYTHON=$PWD/chat_platforms/.venv/bin/python
export OIDC_PYTHON=$PWD/oidc/.venv/bin/python
! uses 'sdk/js|conformance|browser|mcp|oidc' || prepare_node ||
    missing+=("Node $node_at_least or later with the packages of tests/sdk/js/package.json")
! uses browser || prepare_browser || missing+=("Chromium")
! uses 'sdk/js|conformance|postgres|cluster|oidc' || prepare_postgres ||
    missing+=("a Postgres server (initdb and pg_ctl)")
! uses 'deploy|cluster|oidc' || prepare_nginx || missing+=("nginx and openssl")
! uses 'sdk/js|conformance|redis|cluster|oidc' || prepare_redis || missing+=("a Redis server (redis-server)")
! uses sandbox || prepare_sandbox || missing+=("bubblewrap (bwrap)")
if ((${#missing[@]} > 0)); then
    printf 'missing, and could not be installed: %s\n' "${missing[@]}" >&2
    exit 1
fi

(cd .. && cargo build --workspace --bins)
DEERFLOW_BIN_DIR=$(cd .. && cd "${CARGO_TARGET_DIR:-target}" && pwd)/debug
export DEERFLOW_BIN_DIR

failed=()
for suite in "${suites[@]}"; do
    echo "== $suite"
    began=$SECONDS
    bash "$suite" || failed+=("$suite")
    echo "== $suite: $((SECONDS - began)) s"
done
if ((${#failed[@]} > 0)); then
    printf 'failed: tests/%s\n' "${failed[@]}" >&2
    exit 1
fi
echo "== all passed"
