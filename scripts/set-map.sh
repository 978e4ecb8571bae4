#!/usr/bin/env bash
# Makes the README's picture, docs/set-map.svg: who owns which sets of the last-level cache, under
# each policy of docs/tutorials/neighbour.toml, as the study's report has it.
#
#   scripts/set-map.sh                   makes it
#   scripts/set-map.sh --check REPORT    fails if this report of that study draws another one
#
# The program is target/release/piebald, or what PIEBALD names.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"
cd "$root"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
check=
case $#:${1:-} in
    0:)
        piebald=${PIEBALD:-$CARGO_TARGET_DIR/release/piebald}
        [ -x "$piebald" ] || { warn "$piebald: not there; build it first: cargo build --release"; exit 1; }
        "$piebald" study --quiet docs/tutorials/neighbour.toml --output "$scratch/study" >/dev/null
        report=$scratch/study/report.html
        ;;
    2:--check) check=1 report=$2 ;;
    *) warn "set-map: \"$*\": allowed: nothing, or --check REPORT"; exit 2 ;;
esac
picture=docs/set-map.svg
python3 scripts/set_map.py "$report" >"$scratch/picture.svg"
if [ -z "$check" ]; then
    mv "$scratch/picture.svg" "$picture"
    say "$picture: $(wc -c <"$picture") bytes"
elif cmp "$scratch/picture.svg" "$picture"; then
    say "$picture is what the study draws"
else
    warn "$picture is not what the study draws: run scripts/set-map.sh, and look at it"
    exit 1
fi
