#!/usr/bin/env bash
# The conformance suite against our server on SQLite; see tests/external.sh for the environment.
#   PARTS        what to run: "python js" by default
#   MORE_CONFIG  appended to the server's configuration, such as a section `stream_bridge`
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
: "${DEERFLOW_BIN_DIR:?}" "${SDK_PYTHON:?}"
export PYTHONDONTWRITEBYTECODE=1

folder=$(mktemp -d)
children=()
stop() {
    ((${#children[@]} == 0)) || kill "${children[@]}" 2>/dev/null || true
    wait
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 130' INT TERM

# free_port: prints an unused port.
free_port() {
    "$SDK_PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# wait_for URL: waits until it answers.
wait_for() {
    local tries
    for ((tries = 0; tries < 300; tries++)); do
        if curl --silent --fail --output /dev/null "$1"; then return 0; fi
        sleep 0.1
    done
    echo "nothing answers at $1" >&2
    return 1
}

model_port=$(free_port)
"$SDK_PYTHON" scripted_openai.py --port "$model_port" >"$folder/model.log" 2>&1 &
children+=($!)

cat >"$folder/config.yaml" <<YAML
models:
  - name: scripted
    use: langchain_openai:ChatOpenAI
    model: scripted
    api_key: none
    base_url: http://127.0.0.1:$model_port/v1
webhooks:
  allow_private: true
testing:
  conformance_agent: true
${MORE_CONFIG:-}
YAML
port=$(free_port)
GATEWAY_PORT=$port DEER_FLOW_CONFIG_PATH=$folder/config.yaml DEER_FLOW_HOME=$folder/home \
    "$DEERFLOW_BIN_DIR/deerflow" serve >"$folder/gateway.log" 2>&1 &
children+=($!)
wait_for "http://127.0.0.1:$model_port/__log"
wait_for "http://127.0.0.1:$port/ok"

export CONF_NODES='{"model": "model"}' BASE_URL=http://127.0.0.1:$port ASSISTANT_ID=conformance SCRIPTED_BASE=http://127.0.0.1:$model_port
failed=()
for part in ${PARTS:-python js}; do
    case $part in
        python)
            echo "-- Python"
            CONF_XFAIL=$PWD/known.txt "$SDK_PYTHON" -m pytest -q -c python/pytest.ini --rootdir python -n 2 --dist loadfile "$@" python ||
                failed+=("Python")
            ;;
        js)
            for sdk in js/sdk-*; do
                echo "-- JS, $sdk"
                CONF_XFAIL=$PWD/known.txt LG_JS_SDK=$PWD/$sdk node js/run.mjs || failed+=("JS, $sdk")
            done
            ;;
    esac
done
if ((${#failed[@]} > 0)); then
    printf 'failed: %s\n' "${failed[@]}" >&2
    echo "-- the end of the server's log" >&2
    tail -n 40 "$folder/gateway.log" >&2
    exit 1
fi
