#!/usr/bin/env bash
# Counts again what grep, wc and md5sum execute for the files of `scripts/stand-ins.sh mfc`:
#   measure.sh PIEBALD DIR
# PIEBALD is the command, DIR where the files are. Prints for each program instructions and
# references for 64 B, from recordings of 4 and of 36 files. The programs write into a pipe:
# grep stops at the first match where its output is discarded.
set -eu

piebald=$1
cd "$2"
export LC_ALL=C

# counts FILES COMMAND...: instructions and references of a recording.
counts() {
    local files=$1
    shift
    local all=(./*.txt)
    "$piebald" record -q -o measure.pbr -- "$@" "${all[@]:0:files}" | cat >/dev/null
    "$piebald" trace info --json measure.pbr | python3 -c 'import json, sys
counts = json.load(sys.stdin)["counts"]
print(counts["instructions"], counts["references"])'
}

for program in "grep -c @" "grep -c q" "wc -l" "md5sum"; do
    # shellcheck disable=SC2046,SC2086  # two numbers; a command and its options
    set -- $(counts 4 $program) $(counts 36 $program)
    awk -v p="$program" -v a="$1" -v b="$2" -v c="$3" -v d="$4" 'BEGIN {
        printf "%-10s %8.2f instructions %8.2f references for 64 B\n", p, (c - a) / 131072, (d - b) / 131072 }'
done
rm -f measure.pbr
