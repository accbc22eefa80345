#!/usr/bin/env bash
# Random and deliberately invalid requests, generated from the OpenAPI document, against a real gateway; see tests/external.sh for the
# environment. EXAMPLES is the number of requests per operation (default 40, less than a minute); PHASES=coverage,fuzzing adds
# some eight thousand that try every bound and every type in turn, WORKERS is the number of concurrent requests. SEED (default 1)
# determines the requests, except for values that they take from responses.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
exec env PYTHONDONTWRITEBYTECODE=1 "${FUZZ_PYTHON:?}" fuzz.py "$@"
