#!/usr/bin/env bash
# References per second that the recorder takes down, under each QEMU that there is.
#
#   run.sh [QEMU...]   qemu-x86_64 programs; default: that of PATH, and those that
#                      scripts/qemu.sh has built
#
# Three programs of this computer on inputs that are made here. For each: processor seconds
# of QEMU alone and of the recording (the driver's included), the least of three runs in turns, and
# references per second of the latter. Prints a table.
set -eu -o pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=../../scripts/setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"
find_rust || { warn "no Rust compiler"; exit 1; }
"$CARGO" build --release --quiet --manifest-path "$root/Cargo.toml" -p piebald-qemu --lib --example record
record=$CARGO_TARGET_DIR/release/examples/record

qemus=("$@")
if [ ${#qemus[@]} = 0 ]; then
    for each in qemu-x86_64 "${XDG_CACHE_HOME:-$HOME/.cache}"/piebald/tools/qemu-*/bin/qemu-x86_64; do
        if have "$each" && takes_plugins "$each"; then qemus+=("$(command -v "$each")"); fi
    done
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
head -c 900000 /bin/bash >binary
LC_ALL=C awk 'BEGIN { s = 42; for (i = 0; i < 60000; i++) {
    s = (s * 1103515245 + 12345) % 2147483648; printf "%010d line %d of a text to be sorted\n", s, i } }' >text
export LC_ALL=C
commands=("bzip2 -k -c binary" "sort text" "grep -c -E (9|8).*lin.*7 text")

# Processor seconds of a command, its children included.
seconds() { # COMMAND...
    local TIMEFORMAT='%U %S'
    { time "$@" >/dev/null 2>said; } 2>&1 | awk '{ print $1 + $2 }'
}

least() { awk 'NR == 1 || $1 < least { least = $1 } END { print least }' "$1"; }

printf '| QEMU | program | alone, s | recorded, s | references, M | M references per s |\n|---|---|---|---|---|---|\n'
for command in "${commands[@]}"; do
    read -r -a words <<<"$command"
    program=$(command -v "${words[0]}")
    rm -f alone.* recorded.*
    for _ in 1 2 3; do
        for i in "${!qemus[@]}"; do
            seconds "${qemus[i]}" "$program" "${words[@]:1}" >>"alone.$i"
            PIEBALD_QEMU=${qemus[i]} seconds "$record" out.pbr "${words[@]}" >>"recorded.$i"
            sed -n 's/^ *references: \([0-9]*\),$/\1/p' said | tail -n 1 >"references.$i"
        done
    done
    for i in "${!qemus[@]}"; do
        version=$("${qemus[i]}" --version | awk '/version/ && !n++ { print $3 }')
        awk -v v="$version" -v p="${words[0]}" -v a="$(least "alone.$i")" -v r="$(least "recorded.$i")" \
            -v n="$(cat "references.$i")" \
            'BEGIN { printf "| %s | %s | %.2f | %.2f | %.1f | %.1f |\n", v, p, a, r, n / 1e6, n / 1e6 / r }'
    done
done
