#!/usr/bin/env bash
# Runs the vendor's SDK against the fake. Environment: CHAT_PLATFORM, WECOM_PYTHON (Python with requirements.txt).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
exec "${WECOM_PYTHON:?}" -m pytest -q -p no:cacheprovider .
