#!/usr/bin/env bash
# Random and deliberately wrong requests, made from the OpenAPI document, against a real gateway; see tests/external.sh for the
# environment. EXAMPLES says how many requests per operation are random (default 20).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
exec env PYTHONDONTWRITEBYTECODE=1 "${FUZZ_PYTHON:?}" fuzz.py "$@"
