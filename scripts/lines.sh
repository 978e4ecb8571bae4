#!/usr/bin/env bash
# Counts the code of the repository, room by room.
#
#   scripts/lines.sh [--json]
#
# Lines that are neither blank nor comment, of .rs, .c, .h, .sh and .py files and of .ci/run,
# without tests (directories named so, and what only cfg(test) compiles), fuzz targets,
# benches, examples, bench/ and the crate house; the lengths of the Rust functions; and the
# circles of files that import one another. crates/house/src/census.rs says exactly what counts.
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"
cd "$root"

find_rust || { warn "no Rust 1.$MIN_RUST_MINOR or later: run ./test.sh packages"; exit 1; }
"$CARGO" run -q -p piebald-house --bin lines -- "$@"
