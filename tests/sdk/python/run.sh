#!/usr/bin/env bash
# The official Python SDK against a real gateway; see tests/external.sh for the environment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
exec env PYTHONDONTWRITEBYTECODE=1 "${SDK_PYTHON:?}" -m pytest "$@"
