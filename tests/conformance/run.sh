#!/usr/bin/env bash
# The conformance suites against our server; see tests/external.sh for the environment.
#   PARTS        what to run: "python js v3" by default
#   NODES        number of servers: 1 on SQLite by default; more use one Postgres and one Redis, behind a balancer
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
if ((${NODES:-1} > 1)); then
    source ../servers.sh
    trap 'stop; stop_servers' EXIT
else
    trap stop EXIT
fi
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
if ((${NODES:-1} > 1)); then
    start_postgres
    start_redis
    cat >>"$folder/config.yaml" <<YAML
database: {backend: postgres, postgres_url: "$DEERFLOW_TEST_POSTGRES_URL"}
stream_bridge: {type: redis, redis_url: "$DEERFLOW_TEST_REDIS_URL"}
YAML
fi
wait_for "http://127.0.0.1:$model_port/__log"
ports=()
for ((node = 1; node <= ${NODES:-1}; node++)); do
    port=$(free_port)
    GATEWAY_PORT=$port DEER_FLOW_CONFIG_PATH=$folder/config.yaml DEER_FLOW_HOME=$folder/home$node \
        "$DEERFLOW_BIN_DIR/deerflow" serve >"$folder/gateway$node.log" 2>&1 &
    children+=($!)
    # One after the other: the first one creates the schema.
    wait_for "http://127.0.0.1:$port/ok"
    ports+=("$port")
done
BASE_URL=http://127.0.0.1:${ports[0]}
if ((${#ports[@]} > 1)); then
    node balancer.mjs "${ports[@]}" >"$folder/balancer" &
    children+=($!)
    until [[ -s $folder/balancer ]]; do sleep 0.1; done
    BASE_URL=$(<"$folder/balancer")
fi

export CONF_NODES='{"model": "model"}' BASE_URL ASSISTANT_ID=conformance SCRIPTED_BASE=http://127.0.0.1:$model_port
failed=()
for part in ${PARTS:-python js v3}; do
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
        v3)
            echo "-- streaming protocol, Python"
            PYTHON=$SDK_PYTHON WORKERS=2 v3/python/run.sh || failed+=("streaming protocol, Python")
            echo "-- streaming protocol, JS"
            node v3/js/run.mjs || failed+=("streaming protocol, JS")
            ;;
    esac
done
if ((${#failed[@]} > 0)); then
    printf 'failed: %s\n' "${failed[@]}" >&2
    echo "-- the end of the servers' logs" >&2
    tail -n 40 "$folder"/gateway*.log >&2
    exit 1
fi
