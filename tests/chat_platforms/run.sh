#!/usr/bin/env bash
# Runs the SDKs of the vendors against the fakes: `run.sh [platform ..]`, without arguments all judges.
set -euo pipefail
cd "$(dirname "$0")"

python=.venv/bin/python
if [ ! -x "$python" ]; then
    python3 -m venv .venv
fi
.venv/bin/pip install --quiet --disable-pip-version-check -r requirements.txt

cargo build --quiet -p deerflow-chat-platforms
program="$(cargo metadata --format-version 1 --no-deps | "$python" -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/debug/chat-platform"

failed=0
for judge in judges/*/; do
    platform="$(basename "$judge")"
    if [ $# -gt 0 ] && [[ " $* " != *" $platform "* ]]; then
        continue
    fi
    address="$(mktemp)"
    "$program" "$platform" >"$address" &
    fake=$!
    for _ in $(seq 100); do
        [ -s "$address" ] && break
        sleep 0.05
    done
    for script in "$judge"*.py; do
        "$python" "$script" "$(head -n 1 "$address")" || failed=1
    done
    kill "$fake"
    wait "$fake" 2>/dev/null || true
    rm -f "$address"
done
exit "$failed"
