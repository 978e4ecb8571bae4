#!/usr/bin/env bash
# Makes the inputs of a reproduction: programs and data that stand in for those
# that are not free.
#
#   stand-ins.sh rainbow [DIR]     DIR: out/reproduce/rainbow/inputs
#   stand-ins.sh dulo [DIR]        DIR: ${XDG_CACHE_HOME:-~/.cache}/piebald/reproduce/dulo
#   stand-ins.sh srm|mfc [DIR [PART...]]    DIR: as for dulo, with the system's name
#   stand-ins.sh hvr [DIR [NAME...]]        DIR: as for dulo, with the system's name
#   stand-ins.sh guest [DIR]       DIR: as for dulo, with "guest"
#
# rainbow: installs the packages that reproduce/rainbow/programs.toml names, draws the data
# from fixed seeds, compiles the own programs and tries each of them once. What is
# there already and newer than its source is kept. Ends with a table of the files
# and their sha256; data whose sum is in reproduce/rainbow/inputs.sha256 must have it.
# Environment: PIEBALD_TIME_SCALE, a whole number by which time limits are multiplied (1), for a busy machine.
#
# dulo: expands the recorded traces and draws the others, about a minute of processor time
# and 70 MB. What is written must have the sums of reproduce/dulo/inputs.sha256; inputs that
# were made from the same files are kept.
#
# srm, mfc: draws the files that grep, tar, diff, wc and md5sum are recorded on, in seconds. PARTs of
# srm: `full` makes trees of the paper's 100 MiB instead of 24, `database` the star schema of PostgreSQL 15
# (1.8 GB) and recordings of its queries, by the program that PIEBALD names or the release build. Data that have a sum in reproduce/SYSTEM/inputs.sha256 must have it.
#
# guest: a small star schema of PostgreSQL 15 and recordings of its queries, for `piebald reproduce
# srm --guest`, in a minute; the recorder as below.
#
# hvr: what rainbow does, and the same for reproduce/hvr/programs.toml; then records those programs,
# with the program that PIEBALD names or the release build: some ten minutes of processor time and
# 1 GB. What was recorded of the same command, inputs, program file and QEMU is kept; NAMEs are recorded anew, and only they.
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=setup.sh
. "$root/scripts/setup.sh"

fail() { warn "stand-ins: $*"; exit 1; }

# within SECONDS COMMAND...: a command that has this long on a quiet machine.
within() {
    local limit=$(($1 * ${PIEBALD_TIME_SCALE:-1}))
    shift
    timeout "$limit" "$@"
}

case ${1:-} in
    rainbow | dulo | srm | mfc | hvr | guest) ;;
    -h | --help) sed -n '2,/^set -eu/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) warn "stand-ins: \"${1:-}\": allowed: rainbow, dulo, srm, mfc, hvr, guest"; exit 2 ;;
esac
[ $# -le 2 ] || [ "$1" = srm ] || [ "$1" = hvr ] || { warn "stand-ins: one directory at most"; exit 2; }

source=$root/reproduce/$1
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1

# with_packages PACKAGE...: they are there, or this ends.
with_packages() {
    [ -n "$(missing_packages "$@")" ] || return 0
    unlock_sudo
    install_packages "$@" || fail "the packages above are needed"
}

# install_named LIST: the packages that a list of programs names.
install_named() {
    local packages
    packages=$(sed -n 's/^packages = \[\(.*\)\]$/\1/p' "$1" | tr -d '",' | tr ' ' '\n' | sort -u | tr '\n' ' ')
    [ -n "$packages" ] || fail "$1: no packages are named"
    # shellcheck disable=SC2086  # a list of package names
    with_packages $packages
}

# The inputs of DULO: all that they are made from is in the repository.
make_dulo() {
    local dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/piebald/reproduce/dulo} key
    with_packages python3 zstd
    key=$(cd "$source" && cat ./*.py inputs.sha256 recorded/* | sha256sum | cut -d ' ' -f 1)
    mkdir -p "$dir"
    if [ "$(cat "$dir/made-from" 2>/dev/null)" = "$key" ]; then
        say "already made, in $dir"
        return
    fi
    rm -f "$dir/made-from"
    say "making the inputs of DULO in $dir"
    within 900 python3 "$source/inputs.py" "$dir" || fail "the inputs were not made"
    say "$key" >"$dir/made-from"
    say "$(wc -l <"$source/inputs.sha256") files, sums as in reproduce/dulo/inputs.sha256"
}

# sum_of DIR: one sum over names and contents of all files of a directory.
sum_of() {
    (cd "$1" && find . -type f | sort | xargs -d '\n' sha256sum) | sha256sum | cut -d ' ' -f 1
}

# drawn_directory NAME COMMAND...: a directory that a command fills, with the sum of
# inputs.sha256; kept if it has it.
drawn_directory() {
    local name=$1 want
    shift
    want=$(sed -n "s/^\([0-9a-f]*\)  $name\$/\1/p" "$source/inputs.sha256")
    [ -n "$want" ] || fail "$source/inputs.sha256: no sum of $name"
    if [ -d "$name" ] && [ "$(sum_of "$name")" = "$want" ]; then return; fi
    say "drawing $name"
    rm -rf "$name" "$name.sum"
    within 120 "$@" || fail "$name was not drawn"
    [ "$(sum_of "$name")" = "$want" ] || fail "$name differs from that of $source/inputs.sha256"
}

# noted NAME...: writes the sums of directories into NAME.sum, by which recordings of programs
# that read them are told apart.
noted() {
    local name want
    for name in "$@"; do
        want=$(sed -n "s/^\([0-9a-f]*\)  $name\$/\1/p" "$source/inputs.sha256")
        [ "$(cat "$name.sum" 2>/dev/null)" = "$want" ] || say "$want" >"$name.sum"
    done
}

# The program that records; it needs QEMU user mode.
recorder() {
    local program=${PIEBALD:-${CARGO_TARGET_DIR:-$root/target}/release/piebald}
    [ -x "$program" ] || fail "$program: not there: PIEBALD names the program that records"
    say "$program"
}

with_postgres() { with_packages postgresql-15 qemu-user; }

# Records a backend for each query while it probes (programs.toml), into the files that
# `piebald reproduce srm` looks for; half a minute. PostgreSQL refuses root, and who changes user
# inside a recording leaves it incomplete.
record_queries() {
    local program as=() number skip query
    program=$(recorder) || exit 1
    if [ "$(id -u)" = 0 ]; then
        as=(setpriv --reuid=postgres --regid=postgres --clear-groups env "HOME=$PWD")
    fi
    for number in 0 1 2 3 4 5 6; do
        query=scan skip=40
        if [ "$number" -gt 0 ]; then
            query=join$number skip=$((30 + number * 40))
        fi
        say "recording $query"
        "${as[@]}" sh backend.sh none.sql >none.log 2>&1 || fail "the cluster was not recovered"
        RECORDER="$program record --quiet --skip ${skip}M --limit 60M --stop-at-limit -o $query.pbr --" \
            within 300 "${as[@]}" sh backend.sh "$query.sql" >record.log 2>&1 ||
            fail "$query was not recorded: $(tail -n 3 record.log)"
    done
    "${as[@]}" sh backend.sh none.sql >none.log 2>&1 || fail "the cluster was not recovered"
}

# The inputs of SRM-buffer, by parts.
make_srm() {
    local part size=24
    for part in "$@"; do
        case $part in
            full) size=100 ;;
            database) ;;
            *) warn "stand-ins: srm: \"$part\": allowed: full, database"; exit 2 ;;
        esac
    done
    for part in 42 43 44; do
        drawn_directory "tree$size-$part" python3 "$source/tree.py" "tree$size-$part" "$size" "$part"
        noted "tree$size-$part"
    done
    ln -sfn "tree$size-42" tree
    [ -d "copy$size" ] || cp -r "tree$size-42" "copy$size"
    ln -sfn "copy$size" tree2
    [ "tree$size.tar" -nt "tree$size-42" ] ||
        tar --sort=name --owner=0 --group=0 --mtime=@0 -cf "tree$size.tar" "tree$size-42"
    ln -sfn "tree$size.tar" tree.tar
    case " $* " in
        *" database "*)
            with_postgres
            within 300 "$source/star.sh" || fail "the star schema was not made"
            record_queries
            ;;
    esac
}

case $1 in
    dulo) make_dulo "${2:-}"; exit 0 ;;
    guest)
        dir=${2:-${XDG_CACHE_HOME:-$HOME/.cache}/piebald/reproduce/guest}
        program=$(recorder) || exit 1
        with_postgres
        mkdir -p "$dir"
        cd "$dir"
        say "making the star schema in miniature, and recording its queries"
        within 300 "$source/star.sh" "$program" || fail "the star schema was not made"
        say "in $dir"
        exit 0
        ;;
    srm | mfc)
        dir=${2:-${XDG_CACHE_HOME:-$HOME/.cache}/piebald/reproduce/$1}
        mkdir -p "$dir"
        cd "$dir"
        system=$1
        shift $(($# > 1 ? 2 : 1))
        case $system in
            srm) make_srm "$@" ;;
            mfc)
                drawn_directory files python3 "$source/text.py" files 36
                drawn_directory small python3 "$source/text.py" small 1 65536
                ;;
        esac
        say "in $dir"
        exit 0
        ;;
esac

programs=$source/programs.toml
case $1 in
    hvr) dir=${2:-${XDG_CACHE_HOME:-$HOME/.cache}/piebald/reproduce/hvr} ;;
    *) dir=${2:-$root/out/reproduce/$1/inputs} ;;
esac
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
install_named "$programs"
cd "$dir"

# stale FILE SOURCE...: is FILE missing, or older than a source?
stale() {
    local file=$1 each
    shift
    [ -s "$file" ] || return 0
    for each in "$@"; do
        [ "$file" -nt "$each" ] || return 0
    done
    return 1
}

# step SECONDS WHAT COMMAND...: runs a command, and says its output if it fails.
step() {
    local limit=$1 what=$2 log=step.log
    shift 2
    if ! within "$limit" "$@" >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        fail "$what failed: $*"
    fi
    rm -f "$log"
}

# drawn GENERATOR FILE...: files that a Python program of the project draws.
drawn() {
    local generator=$source/$1.py file fresh=yes
    shift
    for file in "$@"; do
        if stale "$file" "$generator" "$source/draw.py"; then fresh=; fi
    done
    [ -z "$fresh" ] || return 0
    say "drawing $*"
    step 120 "drawing $*" python3 "$generator" "${@/%/.new}"
    for file in "$@"; do
        mv "$file.new" "$file"
    done
}

# compiled PROGRAM SOURCE TRIAL LIBRARIES COMPILER...: a program of the project,
# tried once; its trial checks its own results.
compiled() {
    local program=$1 code=$source/$2 trial=$3 libraries=$4
    shift 4
    if stale "$program" "$code"; then
        say "compiling $program"
        # shellcheck disable=SC2086  # options of a compiler
        step 120 "compiling ${code##*/}" "$@" -O2 -Wall "$code" -o "$program.new" $libraries
        # shellcheck disable=SC2086  # words of a command
        step 60 "trying $program" "./$program.new" $trial
        mv "$program.new" "$program"
    fi
}

# The basis from which the linear program is solved further: its first half would
# take a recording minutes.
basis() {
    stale patients.bas patients.mps || return 0
    say "solving the first half of patients.mps"
    step 180 "solving the first half of patients.mps" clp patients.mps -presolve off \
        -maxIterations 30000 -dualsimplex -basisOut patients.bas.new
    [ -s patients.bas.new ] || fail "clp wrote no basis"
    mv patients.bas.new patients.bas
}

# One file of 16,000 samples a second for each line of the text.
speech() {
    local text=$source/sphinx_speech.txt number=0 line name names=()
    stale speech.ctl "$text" || return 0
    say "speaking sphinx_speech.txt"
    while IFS= read -r line; do
        number=$((number + 1))
        name=$(printf 'sentence%02d' "$number")
        step 60 "speaking line $number" espeak-ng -v en-us -s 140 -w "$name.wav" "$line"
        step 60 "resampling line $number" sox -R -D "$name.wav" -r 16000 -c 1 -b 16 -e signed-integer "$name.raw"
        rm "$name.wav"
        names+=("$name")
    done <"$text"
    printf '%s\n' "${names[@]}" >speech.ctl
}

# The inputs of HVR, beside those of Rainbow, and the recordings; NAMEs are recorded anew.
make_hvr() {
    local file program piebald qemu
    with_packages qemu-user
    piebald=$(recorder) || exit 1
    qemu=$(recorder_qemu) || exit 1
    for file in $(python3 "$source/inputs.py"); do
        if stale "$file" "$source/inputs.py" "$root/reproduce/rainbow/draw.py"; then
            say "drawing $file"
            step 120 "drawing $file" python3 "$source/inputs.py" "$file" "$file.new"
            mv "$file.new" "$file"
        fi
    done
    for file in chess.in moves.gtp digits.bc filter.pl visits.awk round.py forest.lua; do
        cp -u "$source/$file" .
    done
    for program in fields lattice; do
        ! stale "$program" "$source/crew.h" || rm -f "$program"
        compiled "$program" "$program.c" "16 10 8" "-pthread -lm" cc -std=gnu11
    done
    ln -sfn "$(cc -print-prog-name=cc1)" cc1
    if stale family.hmm family.sto; then
        step 60 "making family.hmm" hmmbuild family.hmm.new family.sto
        # Without the day on which it was made, it is the same each time.
        sed '/^DATE /d' family.hmm.new >family.hmm
    fi
    if stale genome.fa.bwt genome.fa; then
        step 60 "making genome.fa.bwt" bwa index genome.fa
    fi
    sha256sum --check --quiet --strict "$source/inputs.sha256" ||
        fail "the data above differ from those of $source/inputs.sha256; remove them to have them drawn again"
    python3 "$source/record.py" "$piebald" "$qemu" "$dir" "$@" || fail "not all programs were recorded"
}

if [ "$1" = hvr ]; then
    shift $(($# > 1 ? 2 : 1))
    # What was made for rainbow itself is as good, if it is not stale and has its sums.
    made=$root/out/reproduce/rainbow/inputs
    mkdir -p "$dir"
    [ ! -d "$made" ] || cp -pnR "$made/." "$dir/"
    "$root/scripts/stand-ins.sh" rainbow "$dir" || fail "the inputs of rainbow, which hvr shares, were not made"
    make_hvr "$@"
    say "in $dir"
    exit 0
fi

drawn bzip2_page page.html
drawn xalan_input warehouse.xml orders.xsl
drawn mcf_network vehicles.min
drawn soplex_program patients.mps
basis
speech
compiled ethernet ethernet.cpp 20000 "" g++ -std=c++17
compiled paths paths.c "2 check" "" cc -std=c11
compiled flow flow.c "16 20" -lm cc -std=gnu11
compiled shor shor.c "15 7" "-fopenmp -lquantum -lm" cc -std=c11

sha256sum --check --quiet --strict "$source/inputs.sha256" ||
    fail "the data above differ from those of $source/inputs.sha256; remove them to have them drawn again"

say
printf '%-16s %12s  %s\n' file bytes sha256
for file in $(sed -n 's/^inputs = \[\(.*\)\]$/\1/p' "$programs" | tr -d '",'); do
    [ -s "$file" ] || fail "$dir/$file: programs.toml names it, but nothing made it"
    printf '%-16s %12s  %s\n' "$file" "$(stat -c %s "$file")" "$(sha256sum <"$file" | cut -d ' ' -f 1)"
done
say
say "in $dir"
