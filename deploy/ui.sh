#!/usr/bin/env bash
# DeerFlow's web UI, the gateway and nginx as processes of this machine: `ui.sh start` and `ui.sh stop`.
#   UI            checkout of DeerFlow, or its folder `frontend`
#   PORT          port of nginx, 2026 by default
#   GATEWAY_PORT  port of the gateway on loopback, 8001 by default
#   UI_PORT       port of the UI's own server on loopback, 3000 by default
#   DEERFLOW_BIN  binary of the gateway; by default it is built
# `start` stays in the foreground, stops all three when one of them ends, and leaves no process behind.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
run=${DEER_FLOW_HOME:-$root/.deer-flow}/ui
pid_file=$run/pid

stop() {
    [[ -f $pid_file ]] || return 0
    local pid
    pid=$(<"$pid_file")
    kill -TERM "$pid" 2>/dev/null || { rm -f "$pid_file"; return 0; }
    for _ in $(seq 600); do
        kill -0 "$pid" 2>/dev/null || return 0
        sleep 0.1
    done
    echo "process $pid does not stop" >&2
    return 1
}

build_ui() {
    local gateway=$1
    command -v pnpm >/dev/null || { echo "pnpm is missing: npm install --global pnpm" >&2; exit 1; }
    # The UI's build contains the address of its gateway.
    if ! grep --quiet --fixed-strings "$gateway/" "$ui/.next/routes-manifest.json" 2>/dev/null; then
        (
            cd "$ui"
            pnpm install --frozen-lockfile
            SKIP_ENV_VALIDATION=1 NEXT_TELEMETRY_DISABLED=1 DEER_FLOW_INTERNAL_GATEWAY_BASE_URL=$gateway pnpm build
        )
    fi
}

# Writes the configuration of nginx for processes of this machine.
nginx_configuration() {
    local mime=/etc/nginx/mime.types
    cat <<CONF
daemon off;
pid $run/nginx.pid;
error_log stderr warn;
events {}
http {
    $([[ -f $mime ]] && echo "include $mime;")
    access_log off;
    client_body_temp_path $run/nginx-body;
    proxy_temp_path $run/nginx-proxy;
    fastcgi_temp_path $run/nginx-fastcgi;
    uwsgi_temp_path $run/nginx-uwsgi;
    scgi_temp_path $run/nginx-scgi;
$(sed -e "s/gateway:8001/127.0.0.1:$gateway_port/" -e "s/frontend:3000/127.0.0.1:$ui_port/" -e "s/listen 2026/listen $port/" "$root/deploy/nginx.ui.conf")
}
CONF
}

start() {
    : "${UI:?the checkout of DeerFlow, for example: make ui UI=../deer-flow}"
    ui=$(cd "$UI" && pwd)
    [[ -f $ui/next.config.js ]] || ui=$ui/frontend
    [[ -f $ui/next.config.js ]] || { echo "$UI is no checkout of DeerFlow" >&2; exit 1; }
    port=${PORT:-2026} gateway_port=${GATEWAY_PORT:-8001} ui_port=${UI_PORT:-3000}
    command -v nginx >/dev/null || PATH=$PATH:/usr/sbin
    command -v nginx >/dev/null || { echo "nginx is missing" >&2; exit 1; }
    if [[ -f $pid_file ]] && kill -0 "$(<"$pid_file")" 2>/dev/null; then
        echo "already started as process $(<"$pid_file"): make stop" >&2
        exit 1
    fi
    if [[ -z ${DEERFLOW_BIN:-} ]]; then
        (cd "$root" && cargo build --release -p deerflow-server)
        DEERFLOW_BIN=${CARGO_TARGET_DIR:-$root/target}/release/deerflow
    fi
    build_ui "http://127.0.0.1:$gateway_port"
    mkdir -p "$run"
    echo $$ >"$pid_file"
    nginx_configuration >"$run/nginx.conf"

    local children=()
    trap 'kill -TERM "${children[@]}" 2>/dev/null || true; wait "${children[@]}" 2>/dev/null || true; rm -f "$pid_file"' EXIT
    trap 'exit 0' INT TERM
    GATEWAY_HOST=127.0.0.1 GATEWAY_PORT=$gateway_port AUTH_TRUSTED_PROXIES=${AUTH_TRUSTED_PROXIES:-127.0.0.1,::1} "$DEERFLOW_BIN" serve &
    children+=($!)
    (
        cd "$ui"
        export NODE_ENV=production SKIP_ENV_VALIDATION=1 DEER_FLOW_INTERNAL_GATEWAY_BASE_URL=http://127.0.0.1:$gateway_port
        exec node node_modules/next/dist/bin/next start --hostname 127.0.0.1 --port "$ui_port"
    ) &
    children+=($!)
    nginx -e stderr -p "$run" -c "$run/nginx.conf" &
    children+=($!)
    echo "DeerFlow: http://localhost:$port"
    wait -n "${children[@]}" || true
    echo "a process ended; stopping the others" >&2
    exit 1
}

case ${1:-} in
    start) start ;;
    stop) stop ;;
    *) echo "usage: ui.sh start|stop" >&2; exit 2 ;;
esac
