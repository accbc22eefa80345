# Sourced by the scripts here: private servers with the lifetime of the script that starts them.
#
# Each has two commands in $servers, for tests that kill it and restart it with its data:
#   postgres-kill, postgres-start, redis-kill, redis-start
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

servers=$(mktemp -d)
stop_servers() {
    local kill
    for kill in "$servers"/*-kill; do
        [[ -x $kill ]] && "$kill"
    done
    rm -rf "$servers"
}
trap stop_servers EXIT
trap 'exit 130' INT TERM

# command_named NAME: writes the script on standard input as a command in $servers.
command_named() {
    { printf '#!/usr/bin/env bash\nset -euo pipefail\n' && cat; } >"$servers/$1"
    chmod 755 "$servers/$1"
}

# on_a_port NAME: starts a server on a free port and prints it. Whether a port is free is only known once the server is bound.
on_a_port() {
    local candidate
    for _ in 1 2 3 4 5; do
        candidate=$((20000 + RANDOM % 12000))
        echo "$candidate" >"$servers/$1.port"
        if "$servers/$1-start" >&2; then
            echo "$candidate"
            return
        fi
    done
    echo "$1 did not start on any port:" >&2
    cat "$servers/$1.log" >&2
    return 1
}

# start_postgres: starts a server and exports its address as DEERFLOW_TEST_POSTGRES_URL.
start_postgres() {
    [[ -n $(postgres_bindir) ]] || install_packages postgresql
    local bindir as_server=() data=$servers/postgres password port
    bindir=$(postgres_bindir)
    if [[ -z $bindir ]]; then
        echo "no Postgres server here: neither initdb nor pg_ctl was found" >&2
        return 1
    fi
    password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    mkdir "$data"
    printf '%s\n' "$password" >"$data/password"
    : >"$servers/postgres.log"
    if ((EUID == 0)); then
        # initdb does not run as root, so the server then runs as another user.
        local server_user
        server_user=$(id -un postgres 2>/dev/null || id -un nobody)
        as_server=(runuser -u "$server_user" --)
        chmod 755 "$servers"
        chown -R "$server_user" "$data" "$servers/postgres.log"
    fi
    # The server's user may have no access to the current folder.
    (cd "$data" && "${as_server[@]}" "$bindir/initdb" --pgdata "$data/data" --username deerflow --pwfile "$data/password" \
        --auth scram-sha-256 --encoding UTF8 --locale C --no-sync) >"$servers/initdb.log" ||
        { cat "$servers/initdb.log" >&2; return 1; }
    command_named postgres-start <<END
cd "$data"
${as_server[*]} "$bindir/pg_ctl" start --pgdata "$data/data" --log "$servers/postgres.log" --silent --timeout 60 --options \\
    "-p \$(cat "$servers/postgres.port") -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off -c max_connections=200"
END
    # SIGKILL of all processes, as in a power cut. The parent is stopped first, so that it cannot start others; each child is in a
    # separate session and would continue to serve for a while.
    command_named postgres-kill <<END
pid=\$(head -n 1 "$data/data/postmaster.pid" 2>/dev/null) || exit 0
kill -STOP "\$pid" 2>/dev/null || exit 0
children=\$(pgrep --parent "\$pid") || true
all=(\$pid \$children)
kill -KILL "\${all[@]}" 2>/dev/null || true
for _ in \$(seq 1000); do
    kill -0 "\${all[@]}" 2>/dev/null || exit 0
    sleep 0.02
done
echo "these processes of Postgres do not end: \${all[*]}" >&2
exit 1
END
    port=$(on_a_port postgres)
    export DEERFLOW_TEST_POSTGRES_URL="postgres://deerflow:$password@127.0.0.1:$port/postgres"
    export DEERFLOW_TEST_SERVERS=$servers
}

# start_redis: starts a server and exports its address as DEERFLOW_TEST_REDIS_URL. Its data survives a restart.
start_redis() {
    command -v redis-server >/dev/null || install_packages redis-server
    if ! command -v redis-server >/dev/null; then
        echo "no Redis server here: redis-server was not found" >&2
        return 1
    fi
    local port
    mkdir "$servers/redis"
    command_named redis-start <<END
redis-server --port "\$(cat "$servers/redis.port")" --bind 127.0.0.1 --save '' --appendonly yes --maxmemory-policy noeviction \\
    --dir "$servers/redis" --pidfile "$servers/redis.pid" --daemonize yes --logfile "$servers/redis.log"
for _ in \$(seq 100); do
    redis-cli -p "\$(cat "$servers/redis.port")" ping 2>/dev/null | grep -q PONG && exit 0
    sleep 0.05
done
exit 1
END
    command_named redis-kill <<END
pid=\$(cat "$servers/redis.pid" 2>/dev/null) || exit 0
kill -KILL "\$pid" 2>/dev/null || exit 0
while kill -0 "\$pid" 2>/dev/null; do sleep 0.02; done
END
    port=$(on_a_port redis)
    export DEERFLOW_TEST_REDIS_URL="redis://127.0.0.1:$port"
    export DEERFLOW_TEST_SERVERS=$servers
}

# cargo_test NAME: runs every test of the workspace with NAME in its name; fails if there is none.
cargo_test() {
    cargo test --workspace "$1" -- --include-ignored | tee "$servers/tests.log"
    if ! grep -Eq "^test .*$1.* \.\.\. ok\$" "$servers/tests.log"; then
        echo "no test with $1 in its name ran" >&2
        return 1
    fi
}
