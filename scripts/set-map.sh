#!/usr/bin/env bash
# Makes the README's picture, docs/set-map.svg: who owns which sets of the last-level cache, under
# each policy of docs/tutorials/neighbour.toml, as the study's report has it.
#
#   scripts/set-map.sh [--check]     --check: fails if the committed picture is another one
#
# The program is target/release/piebald, or what PIEBALD names.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"
cd "$root"

check=
case $*: in
    :) ;;
    --check:) check=1 ;;
    *) warn "set-map: \"$*\": allowed: nothing, or --check"; exit 2 ;;
esac
piebald=${PIEBALD:-$CARGO_TARGET_DIR/release/piebald}
[ -x "$piebald" ] || { warn "$piebald: not there; build it first: cargo build --release"; exit 1; }
picture=docs/set-map.svg

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$piebald" study --quiet docs/tutorials/neighbour.toml --output "$scratch/study" >/dev/null
python3 scripts/set_map.py "$scratch/study/report.html" >"$scratch/picture.svg"
if [ -z "$check" ]; then
    mv "$scratch/picture.svg" "$picture"
    say "$picture: $(wc -c <"$picture") bytes"
elif cmp "$scratch/picture.svg" "$picture"; then
    say "$picture is what the study draws"
else
    warn "$picture is not what the study draws: run scripts/set-map.sh, and look at it"
    exit 1
fi
