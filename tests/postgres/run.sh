#!/usr/bin/env bash
# Runs every test with `postgres` in its name against a private server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/servers.sh

start_postgres
cargo_test postgres
