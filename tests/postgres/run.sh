#!/usr/bin/env bash
# Runs every test with `postgres` in its name against a private cluster that lives as long as this script.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source ../packages.sh
workspace=$(cd ../.. && pwd)

if [[ -z $(postgres_bindir) ]]; then
    install_packages postgresql
fi
bindir=$(postgres_bindir)
if [[ -z $bindir ]]; then
    echo "no Postgres server here: neither initdb nor pg_ctl was found" >&2
    exit 1
fi

# initdb refuses root, so the server then runs as another user.
as_server=()
if ((EUID == 0)); then
    server_user=$(id -un postgres 2>/dev/null || id -un nobody)
    as_server=(runuser -u "$server_user" --)
fi

folder=$(mktemp -d)
log=$folder/server.log
stop() {
    "${as_server[@]}" "$bindir/pg_ctl" stop --pgdata "$folder/data" --mode immediate --silent 2>/dev/null || true
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 130' INT TERM

password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
printf '%s\n' "$password" >"$folder/password"
if ((EUID == 0)); then
    chown -R "$server_user" "$folder"
fi
cd "$folder" # the server's user may not enter ours
"${as_server[@]}" "$bindir/initdb" --pgdata "$folder/data" --username deerflow --pwfile "$folder/password" \
    --auth scram-sha-256 --encoding UTF8 --locale C --no-sync >"$folder/initdb.log" ||
    { cat "$folder/initdb.log" >&2; exit 1; }

# A port is only known to be free once the server has it.
start() {
    "${as_server[@]}" "$bindir/pg_ctl" start --pgdata "$folder/data" --log "$log" --silent --timeout 60 --options \
        "-p $1 -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off -c max_connections=200"
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
    echo "Postgres did not start:" >&2
    cat "$log" >&2
    exit 1
fi

export DEERFLOW_TEST_POSTGRES_URL="postgres://deerflow:$password@127.0.0.1:$port/postgres"
cd "$workspace"
cargo test --workspace postgres -- --include-ignored | tee "$folder/tests.log"
if ! grep -Eq '^test .*postgres.* \.\.\. ok$' "$folder/tests.log"; then
    echo "no test with postgres in its name ran" >&2
    exit 1
fi
