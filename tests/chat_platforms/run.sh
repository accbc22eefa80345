#!/usr/bin/env bash
# Runs the SDKs of the vendors against the fakes: `run.sh [platform ..]`, without arguments all judges.
# A judge is a folder of pytest files, or a script `judge.py` that gets the fake's base address.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# Both are set by tests/external.sh; alone, this script installs and builds what it needs.
python=${CHANNELS_PYTHON:-$PWD/.venv/bin/python}
if [[ -z ${CHANNELS_PYTHON:-} ]]; then
    [[ -x $python ]] || python3 -m venv .venv
    "$python" -m pip install --quiet --disable-pip-version-check -r requirements.txt
fi
if [[ -z ${DEERFLOW_BIN_DIR:-} ]]; then
    cargo build --quiet -p deerflow-chat-platforms
    DEERFLOW_BIN_DIR="$(cargo metadata --format-version 1 --no-deps |
        "$python" -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/debug"
fi
export CHAT_PLATFORM=$DEERFLOW_BIN_DIR/chat-platform PYTHONDONTWRITEBYTECODE=1

failed=0
for judge in judges/*/; do
    platform="$(basename "$judge")"
    if (($# > 0)) && [[ " $* " != *" $platform "* ]]; then
        continue
    fi
    echo "== $platform"
    if compgen -G "${judge}test_*.py" >/dev/null; then
        "$python" -m pytest -q -p no:cacheprovider "$judge" || failed=1
    fi
    if [[ -f ${judge}judge.py ]]; then
        address="$(mktemp)"
        "$CHAT_PLATFORM" "$platform" >"$address" &
        fake=$!
        for _ in $(seq 100); do
            [[ -s $address ]] && break
            sleep 0.05
        done
        "$python" "${judge}judge.py" "$(head -n 1 "$address")" || failed=1
        kill "$fake"
        wait "$fake" 2>/dev/null || true
        rm -f "$address"
    fi
done
exit "$failed"
