#!/usr/bin/env bash
# Builds every fuzz target and runs it once over its seeds, without fuzzing, so that no target breaks unnoticed. Needs neither a
# nightly toolchain nor cargo-fuzz.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

command -v c++ >/dev/null || (source ../tests/packages.sh && install_packages g++)
# The versions of the workspace.
cp ../Cargo.lock .
export CARGO_TARGET_DIR=../target/fuzz CARGO_PROFILE_DEV_OPT_LEVEL=0
cargo build --bins
for target in fuzz_targets/*.rs; do
    target=$(basename "$target" .rs)
    output=$("$CARGO_TARGET_DIR/debug/$target" -timeout=10 -rss_limit_mb=1024 seeds/"$target"/* 2>&1) || {
        printf '%s\n%s: FAILED\n' "$output" "$target" >&2
        exit 1
    }
    echo "$target: ok"
done
