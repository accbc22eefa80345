#!/usr/bin/env bash
# The suite of the streaming protocol against two servers; see tests/external.sh for the environment.
set -euo pipefail
NODES=2 PARTS=v3 exec "$(dirname "${BASH_SOURCE[0]}")/run.sh"
