#!/usr/bin/env bash
# Runs every test with `redis` in its name: most against a shared private server, those that kill, empty or stall a server
# against separate ones.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/servers.sh

start_redis
cargo_test redis
