#!/bin/sh
# rustdoc with unstable options. The variable is set for rustdoc alone: set for cargo, it would rebuild all crates whose
# build scripts read it.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
