#!/usr/bin/env bash
# Checks the examples of deploy/ with validators of Compose and Kubernetes; see tests/external.sh for the environment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
exec env PYTHONDONTWRITEBYTECODE=1 "${DEPLOY_PYTHON:?}" -m pytest -q -p no:cacheprovider "$@"
