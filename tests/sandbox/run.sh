#!/usr/bin/env bash
# Runs every test with `sandbox` in its name, including those that need bubblewrap. They use Python to try system calls.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/servers.sh

command -v bwrap >/dev/null || install_packages bubblewrap
command -v python3 >/dev/null || install_packages python3
cargo_test sandbox
