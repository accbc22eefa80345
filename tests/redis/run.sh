#!/usr/bin/env bash
# Runs every test with `redis` in its name: some against a private server that lives as long as this script, those that
# kill, empty or stall one against servers of their own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source ../packages.sh
workspace=$(cd ../.. && pwd)

if ! command -v redis-server >/dev/null; then
    install_packages redis-server
fi
if ! command -v redis-server >/dev/null; then
    echo "no Redis server here: redis-server was not found" >&2
    exit 1
fi

folder=$(mktemp -d)
server=
stop() {
    if [[ -n $server ]]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 130' INT TERM

# A port is only known to be free once the server has it.
start() {
    redis-server --port "$1" --bind 127.0.0.1 --save '' --dir "$folder" >"$folder/server.log" 2>&1 &
    server=$!
    for _ in $(seq 50); do
        if grep -q 'Ready to accept connections' "$folder/server.log"; then
            return 0
        fi
        kill -0 "$server" 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}
port=
for _ in 1 2 3 4 5; do
    candidate=$((20000 + RANDOM % 12000))
    if start "$candidate"; then
        port=$candidate
        break
    fi
done
if [[ -z $port ]]; then
    echo "Redis did not start:" >&2
    cat "$folder/server.log" >&2
    exit 1
fi

export DEERFLOW_TEST_REDIS_URL="redis://127.0.0.1:$port"
cd "$workspace"
cargo test --workspace redis -- --include-ignored | tee "$folder/tests.log"
if ! grep -Eq '^test .*redis.* \.\.\. ok$' "$folder/tests.log"; then
    echo "no test with redis in its name ran" >&2
    exit 1
fi
