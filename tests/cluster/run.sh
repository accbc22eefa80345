#!/usr/bin/env bash
# Kills, freezes and stops gateways while runs are live: one alone, and three on one Postgres and one Redis. Both servers are
# private and live as long as this script.
#
# ROUNDS, RUNS (live ones per round) and SEED (the first) say how long and what; every round prints its seed, and SEED=n ROUNDS=1
# plays it again. Arguments go to the test program, such as the name of one test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source ../packages.sh
workspace=$(cd ../.. && pwd)

[[ -n $(postgres_bindir) ]] || install_packages postgresql
bindir=$(postgres_bindir)
command -v redis-server >/dev/null || install_packages redis-server
if [[ -z $bindir ]] || ! command -v redis-server >/dev/null; then
    echo "this needs a Postgres server (initdb and pg_ctl) and a Redis server (redis-server)" >&2
    exit 1
fi

# initdb refuses root, so the server then runs as another user.
as_server=()
if ((EUID == 0)); then
    server_user=$(id -un postgres 2>/dev/null || id -un nobody)
    as_server=(runuser -u "$server_user" --)
fi

folder=$(mktemp -d)
redis=
stop() {
    "${as_server[@]}" "$bindir/pg_ctl" stop --pgdata "$folder/postgres/data" --mode immediate --silent 2>/dev/null || true
    if [[ -n $redis ]]; then
        kill "$redis" 2>/dev/null || true
        wait "$redis" 2>/dev/null || true
    fi
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 130' INT TERM

mkdir "$folder/postgres" "$folder/redis"
password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
printf '%s\n' "$password" >"$folder/postgres/password"
if ((EUID == 0)); then
    chmod 755 "$folder"
    chown -R "$server_user" "$folder/postgres"
fi
cd "$folder" # the server's user may not enter ours
"${as_server[@]}" "$bindir/initdb" --pgdata postgres/data --username deerflow --pwfile postgres/password \
    --auth scram-sha-256 --encoding UTF8 --locale C --no-sync >redis/initdb.log ||
    { cat redis/initdb.log >&2; exit 1; }

# A port is only known to be free once the server has it.
start_postgres() {
    "${as_server[@]}" "$bindir/pg_ctl" start --pgdata postgres/data --log postgres/log --silent --timeout 60 --options \
        "-p $1 -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off -c max_connections=200"
}
start_redis() {
    redis-server --port "$1" --bind 127.0.0.1 --save '' --maxmemory-policy noeviction --dir "$folder/redis" >redis/log 2>&1 &
    redis=$!
    for _ in $(seq 50); do
        if grep -q 'Ready to accept connections' redis/log; then
            return 0
        fi
        kill -0 "$redis" 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}
# on_a_port START: the port that the server was started on.
on_a_port() {
    local candidate
    for _ in 1 2 3 4 5; do
        candidate=$((20000 + RANDOM % 12000))
        if "$1" "$candidate"; then
            port=$candidate
            return
        fi
    done
    echo "$1 failed on every port:" >&2
    cat "$folder"/*/log >&2
    exit 1
}
on_a_port start_postgres
export DEERFLOW_TEST_POSTGRES_URL="postgres://deerflow:$password@127.0.0.1:$port/postgres"
on_a_port start_redis
export DEERFLOW_TEST_REDIS_URL="redis://127.0.0.1:$port"

cd "$workspace"
# One after the other: their figures are times.
cargo test --workspace --test cluster -- --include-ignored --test-threads=1 --nocapture "$@"
