#!/usr/bin/env bash
# Kills, freezes and stops gateways and their servers while runs are active: a single gateway, and three with one
# Postgres and one Redis, also behind nginx.
#
# ROUNDS, RUNS (active ones per round) and SEED (of the first round) control the tests; every round prints its seed, and
# SEED=n ROUNDS=1 repeats it. From ten rounds on the measured times are compared with their limits. Arguments are passed to the
# test program, such as the name of one test.
#
# The figures of chat channels take hours: they run only if FIGURES is set, as `make cluster-channels` does.
#
# Some tests have additional parameters: KEYS, PAIRS, VIEWERS, RECONNECTS, SECONDS, FROZEN_SECONDS; AT_ONCE is the number of concurrent keys or
# pairs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/servers.sh

faketime() { compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' || compgen -G '/usr/lib/faketime/libfaketimeMT.so.1'; }
[[ -n $(faketime) ]] || install_packages faketime
DEERFLOW_TEST_FAKETIME=$(faketime | head -n 1)
export DEERFLOW_TEST_FAKETIME
command -v nginx >/dev/null || install_packages nginx-light
start_postgres
start_redis
# The recorded histories of the clients are checked again, by a program that is independent of the tests.
export DEERFLOW_HISTORIES=$servers/histories
mkdir "$DEERFLOW_HISTORIES"
cargo build --workspace --bins
skipped=(--skip channels::figures)
[[ -z ${FIGURES:-} ]] || skipped=()
# Sequential, because the tests measure times.
cargo test --workspace --test cluster -- --include-ignored --test-threads=1 --nocapture "${skipped[@]}" "$@"
if compgen -G "$DEERFLOW_HISTORIES/*.jsonl" >/dev/null; then
    cargo xtask check-history "$DEERFLOW_HISTORIES"/*.jsonl
fi
