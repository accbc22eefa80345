#!/usr/bin/env bash
# Random and deliberately wrong requests, made from the OpenAPI document, against a real gateway; see tests/external.sh for the
# environment. EXAMPLES says how many requests are made per operation (default 40, less than a minute); PHASES=coverage,fuzzing adds
# some eight thousand that try every bound and every type in turn, WORKERS says how many are asked at once. The requests follow from SEED
# (default 1), but for what they take from answers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
exec env PYTHONDONTWRITEBYTECODE=1 "${FUZZ_PYTHON:?}" fuzz.py "$@"
