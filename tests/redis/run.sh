#!/usr/bin/env bash
# Runs every test with `redis` in its name: some against a private server, those that kill, empty or stall one against
# servers of their own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/servers.sh

start_redis
cargo_test redis
