#!/usr/bin/env bash
# Runs the commands of README.md in a fresh clone of the committed state.
#
# Blocks marked `sh` run, in order, each in its own shell (bash -euo pipefail)
# in the clone's root. Blocks marked `sh stage` show commands that a stage of
# test.sh runs by itself and are left out here. Blocks with other marks show
# output or files.
#
# Afterwards the table of verbs in docs/status.md is held against the program:
# `--help` must answer for every verb that exists, and for no other.
#
#   scripts/readme-commands.sh [--list] [FILE]     FILE defaults to README.md
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"
cd "$root"

list=
[ "${1:-}" != --list ] || { list=1; shift; }
readme=${1:-README.md}
[ -r "$readme" ] || { warn "$readme: cannot be read"; exit 1; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# One file per block, named by its line.
awk -v out="$scratch" '
    /^```sh *$/ { file = sprintf("%s/block-%05d", out, NR); open = NR; next }
    /^```/      { if (file) close(file); file = ""; open = 0; next }
    file        { print > file }
    END         { if (open) { printf "unclosed block at line %d\n", open > "/dev/stderr"; exit 1 } }
' "$readme"

blocks=("$scratch"/block-*)
[ -e "${blocks[0]}" ] || { warn "$readme: no block marked sh"; exit 1; }
if [ -n "$list" ]; then
    cat "${blocks[@]}"
    exit 0
fi

[ -z "$(git status --porcelain)" ] || say "note: changes that are not committed are not tested here"
git clone --quiet --no-hardlinks "$root" "$scratch/clone"
cd "$scratch/clone"
# What was built of the same files is not built again: cargo goes by the times of files, and a
# clone's are new. A file that differs keeps its new time, and one that is not committed is
# missing here, so that what depends on it is built.
while IFS= read -r -d '' file; do
    if cmp -s "$root/$file" "$file"; then touch -r "$root/$file" "$file"; fi
done < <(git ls-files -z)
# The same for the commit that the command names (crates/cli/build.rs).
touch -r "$(git -C "$root" rev-parse --path-format=absolute --git-path logs/HEAD)" .git/logs/HEAD
# As for a user, the program is found under target/; what is built there already
# is built once only.
mkdir -p "$CARGO_TARGET_DIR"
ln -s "$CARGO_TARGET_DIR" target
unset CARGO_TARGET_DIR
find_rust || { warn "no Rust 1.$MIN_RUST_MINOR or later: run ./test.sh packages"; exit 1; }
PATH=$RUST_DIR:$PATH

for block in "${blocks[@]}"; do
    line=$((10#${block##*-}))
    printf '>>> %s:%d\n' "$readme" "$line"
    sed 's/^/    $ /' "$block"
    bash -euo pipefail "$block" </dev/null || {
        warn "$readme:$line: the block fails with exit status $?"
        exit 1
    }
done
printf '%d blocks of %s ran\n' "${#blocks[@]}" "$readme"

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
                for (j = 1; j <= m && word[j] ~ /^[a-z]+$/; j++)
                    verb = verb (verb == "" ? "" : " ") word[j]
                if (i == 2 && m > 1 && word[2] ~ /^[a-z]+$/) base = word[1]
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
