#!/usr/bin/env bash
# Kills, freezes and stops gateways, and what they stand on, while runs are live: one gateway alone, and three on one
# Postgres and one Redis, also behind nginx.
#
# ROUNDS, RUNS (live ones per round) and SEED (the first) say how long and what; every round prints its seed, and SEED=n ROUNDS=1
# plays it again. From ten rounds on the times are figures, and have to keep their limits. Arguments go to the test program, such
# as the name of one test.
#
# Some tests have a measure of their own: KEYS, PAIRS, VIEWERS, SECONDS, FROZEN_SECONDS; AT_ONCE is how many keys or pairs go side by side.
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
# What the clients saw is checked once more, by a program that knows nothing of the tests.
export DEERFLOW_HISTORIES=$servers/histories
mkdir "$DEERFLOW_HISTORIES"
cargo build --workspace --bins
# One after the other: their figures are times.
cargo test --workspace --test cluster -- --include-ignored --test-threads=1 --nocapture "$@"
if compgen -G "$DEERFLOW_HISTORIES/*.jsonl" >/dev/null; then
    cargo xtask check-history "$DEERFLOW_HISTORIES"/*.jsonl
fi
