#!/usr/bin/env bash
# Runs the commands of README.md and of the tutorials in a fresh clone of the committed state.
#
# Blocks marked `sh` run, in order, each in its own shell (bash -euo pipefail) in the clone's root,
# with `piebald` on the path. A block marked `text` shows output of the block before it, and is held
# against it (scripts/shown.py); `text near` shows that of a program that is recorded anew, whose
# numbers may differ a little. Blocks marked `sh stage` show commands that a stage of
# test.sh runs by itself and are left out here. Blocks with other marks show
# files.
#
# Afterwards the table of verbs in docs/status.md is held against the program:
# `--help` must answer for every verb that exists, and for no other.
#
#   scripts/readme-commands.sh [--list] [FILE...]     default: README.md docs/tutorials/*.md
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"
cd "$root"

list=
[ "${1:-}" != --list ] || { list=1; shift; }
pages=("$@")
[ ${#pages[@]} -gt 0 ] || pages=(README.md docs/tutorials/*.md)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# blocks_of PAGE FOLDER: one file for each block, named by its line: LINE.sh, and LINE.text or
# LINE.near for what the page shows of its output, where LINE is that of the command.
blocks_of() {
    mkdir -p "$2"
    awk -v out="$2" '
        /^```/ && open { close(file); file = ""; open = 0; next }
        /^```sh *$/    { command = NR; kind = "sh" }
        /^```text *$/  { kind = "text" }
        /^```text near *$/ { kind = "near" }
        /^```/ {
            open = NR
            if (kind != "" && command) file = sprintf("%s/%05d.%s", out, command, kind)
            if (kind != "sh") command = 0
            kind = ""
            next
        }
        /^#/ && !open  { command = 0 }
        file           { print > file }
        END            { if (open) { printf "unclosed block at line %d\n", open > "/dev/stderr"; exit 1 } }
    ' "$1"
}

for n in "${!pages[@]}"; do
    [ -r "${pages[n]}" ] || { warn "${pages[n]}: cannot be read"; exit 1; }
    blocks_of "${pages[n]}" "$scratch/$n"
    compgen -G "$scratch/$n/*.sh" >/dev/null || { warn "${pages[n]}: no block marked sh"; exit 1; }
done
if [ -n "$list" ]; then
    for n in "${!pages[@]}"; do cat "$scratch/$n"/*.sh; done
    exit 0
fi

[ -z "$(git status --porcelain)" ] || say "note: changes that are not committed are not tested here"
clone_as_built "$root" "$scratch/clone"
cd "$scratch/clone"
# As for a user, the program is found under target/; what is built there already
# is built once only.
mkdir -p "$CARGO_TARGET_DIR"
ln -s "$CARGO_TARGET_DIR" target
unset CARGO_TARGET_DIR
find_rust || { warn "no Rust 1.$MIN_RUST_MINOR or later: run ./test.sh packages"; exit 1; }
PATH=$PWD/target/release:$RUST_DIR:$PATH

ran=0 held=0
# run_block PAGE FILE: runs a command of a page, and holds what is shown of its output against it.
run_block() {
    local page=$1 file=$2 line
    line=$((10#$(basename "$file" .sh)))
    printf '>>> %s:%d\n' "$page" "$line"
    sed 's/^/    $ /' "$file"
    bash -euo pipefail "$file" </dev/null 2>&1 | tee "$scratch/printed" || {
        warn "$page:$line: the block fails"
        return 1
    }
    ran=$((ran + 1))
    if [ -e "${file%.sh}.text" ]; then
        python3 scripts/shown.py "${file%.sh}.text" "$scratch/printed"
    elif [ -e "${file%.sh}.near" ]; then
        python3 scripts/shown.py --near "${file%.sh}.near" "$scratch/printed"
    else
        return 0
    fi || { warn "$page:$line: the page shows something else than what was printed"; return 1; }
    held=$((held + 1))
}

for n in "${!pages[@]}"; do
    began=$SECONDS
    for file in "$scratch/$n"/*.sh; do run_block "${pages[n]}" "$file"; done
    printf '%s: %d s\n' "${pages[n]}" "$((SECONDS - began))"
done
printf '%d blocks of %s ran, %d of them printed what is shown\n' "$ran" "${pages[*]}" "$held"
# What the tutorial has made.
case " ${pages[*]} " in
    *" docs/tutorials/neighbour.md "*) scripts/set-map.sh --check out/tutorial/neighbour/report.html ;;
esac

# Prints "STATE VERB..." per verb of docs/status.md. A row may name several: the
# words after the first are subcommands of the same verb.
verbs() {
    awk -F'|' '
        $2 ~ /^ *verb *$/ { table = 1; next }
        table && !/^\|/ { exit }
        table && $2 ~ /`/ {
            gsub(/^ +| +$/, "", $4)
            n = split($2, code, "`")
            base = ""
            for (i = 2; i <= n; i += 2) {
                m = split(code[i], word, " ")
                verb = base
                for (j = 1; j <= m && word[j] ~ /^[a-z][a-z-]*$/; j++)
                    verb = verb (verb == "" ? "" : " ") word[j]
                if (i == 2 && m > 1 && word[2] ~ /^[a-z][a-z-]*$/) base = word[1]
                print ($4 == "exists" ? "exists" : "absent"), verb
            }
        }' docs/status.md
}

checked=0
while read -r state verb; do
    read -ra words <<<"$verb"
    if target/release/piebald "${words[@]}" --help >/dev/null 2>&1; then
        found=exists
    else
        found=absent
    fi
    [ "$found" = "$state" ] || {
        warn "docs/status.md: \"$verb\" is said to be $state, and the program says: $found"
        exit 1
    }
    checked=$((checked + 1))
done < <(verbs)
[ "$checked" -gt 0 ] || { warn "docs/status.md: no verb found"; exit 1; }
printf '%d verbs of docs/status.md agree with the program\n' "$checked"
