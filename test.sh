#!/usr/bin/env bash
# Everything that is checked before a change is accepted, in named stages.
#
#   ./test.sh              every stage
#   ./test.sh STAGE...     only these
#   ./test.sh --list       their names, limits and meaning
#
# Installs what is missing (see scripts/setup.sh), goes on after a failing
# stage, and ends with a table and the line `N passed, N failed`. A stage that
# cannot run here says why and counts as skipped; with CI=true it counts as
# failed unless it is listed in ALLOWED_SKIPS.
set -u

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"
cd "$root" || exit 1

# name:limit in seconds:what it does
STAGES=(
    "packages:900:install what is missing"
    "shell:60:shellcheck of every script"
    "fmt:60:rustfmt, check only"
    "clippy:900:lints of the whole workspace, warnings are errors"
    "docs:900:rustdoc of the whole workspace, warnings are errors"
    "build:900:release build"
    "tests:1800:unit, property and integration tests"
    "model:600:what threads share, in every order in which they may meet"
    "fuzz:1200:fuzz targets on their corpora and on random input"
    "bare-metal:900:the policy core without an operating system"
    "guest:600:the Linux module and its verbs in the distribution's kernel, under QEMU"
    "licences:300:cargo-deny: licences and advisories of dependencies"
    "demo:900:demo.sh"
    "reproduce:1500:the papers' experiments in their quick form"
    "readme:1200:the commands of README.md in a fresh clone"
)

# cargo-deny takes minutes to build and is no Debian package.
ALLOWED_SKIPS="licences"

# Exit status by which a stage says that it cannot run here.
SKIP=77

# What a compiler notes for the next build of changed code is never read on a clean machine.
[ "${CI:-}" != true ] || export CARGO_INCREMENTAL=0

REQUIRED="ca-certificates git build-essential pkg-config python3 qemu-user zstd bzip2 grep coreutils"
WANTED="python3-venv python3-dev valgrind chromium shellcheck"

# A lock file that does not match the manifests is an error where it counts.
locked=()
[ "${CI:-}" = true ] && locked=(--locked)

skip() {
    printf '%s\n' "$*" >"$STAGE_NOTE"
    say "skipped: $*"
    exit "$SKIP"
}

need_rust() {
    find_rust || { warn "no Rust 1.$MIN_RUST_MINOR or later: run ./test.sh packages"; exit 1; }
}

stage_packages() {
    # shellcheck disable=SC2086  # lists of package names
    install_packages $REQUIRED || exit 1
    # Each of these serves single checks, which name it if they miss it.
    # shellcheck disable=SC2086
    install_packages $WANTED || [ "${CI:-}" != true ] || exit 1
    ensure_rust || exit 1
    "$RUSTC" --version
    "$CARGO" --version
}

stage_shell() {
    local script
    local scripts=(test.sh demo.sh .ci/run scripts/*.sh kernel/*.sh kernel/test/*.sh crates/linux/guest/*.sh)
    for script in "${scripts[@]}"; do
        bash -n "$script" || exit 1
    done
    have shellcheck || skip "shellcheck is not installed (syntax alone was checked)"
    shellcheck -x -P SCRIPTDIR "${scripts[@]}"
}

stage_fmt() {
    need_rust
    cargo_tool fmt --all --check || exit 1
    cargo_tool fmt --manifest-path kernel/core/Cargo.toml --check
}

stage_clippy() {
    need_rust
    cargo_tool clippy ${locked[@]+"${locked[@]}"} --workspace --all-targets -- -D warnings || exit 1
    cargo_tool clippy --locked --manifest-path kernel/core/Cargo.toml --all-targets -- -D warnings
}

stage_docs() {
    need_rust
    # Private items too: the rooms' inner vocabulary is linked from their docs.
    RUSTDOCFLAGS="-D warnings" "$CARGO" doc ${locked[@]+"${locked[@]}"} --workspace --no-deps || exit 1
    RUSTDOCFLAGS="-D warnings" "$CARGO" doc --locked --manifest-path kernel/core/Cargo.toml --no-deps \
        --document-private-items
}

stage_build() {
    need_rust
    "$CARGO" build ${locked[@]+"${locked[@]}"} --workspace --release
}

stage_tests() {
    need_rust
    # The dev profile: optimised a little, with debug assertions and overflow
    # checks, which a release build would leave out.
    "$CARGO" test ${locked[@]+"${locked[@]}"} --workspace --no-fail-fast || exit 1
    "$CARGO" test --locked --manifest-path kernel/core/Cargo.toml --lib
}

# A target directory of its own: the flag changes every crate.
stage_model() {
    need_rust
    RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" "$CARGO" test ${locked[@]+"${locked[@]}"} --release \
        --target-dir "$CARGO_TARGET_DIR/loom" -p piebald-policy --test mfc_loom
}

# Every test whose name contains `fuzz_` is a fuzz target: it runs its corpus
# and PIEBALD_FUZZ_CASES random inputs.
stage_fuzz() {
    need_rust
    local log=$STAGE_NOTE.log
    # The programs of the stage `tests`, nothing is built for this: they have overflow checks
    # and debug assertions, which a release build would leave out.
    PIEBALD_FUZZ_CASES=${PIEBALD_FUZZ_CASES:-20000} \
        "$CARGO" test ${locked[@]+"${locked[@]}"} --workspace --tests -- fuzz_ 2>&1 | tee "$log"
    [ "${PIPESTATUS[0]}" = 0 ] || exit 1
    local targets
    targets=$(grep -c '^test .*fuzz_.* \.\.\. ok$' "$log")
    say "fuzz targets run: $targets"
    [ "$targets" -gt 0 ]
}

stage_bare_metal() { scripts/bare-metal.sh; }

# Fails, and says so, if the distribution serves no kernel that the module knows.
stage_guest() { kernel/test.sh && crates/linux/guest/test.sh && crates/linux/guest/counters.sh; }

stage_licences() {
    need_rust
    if ! "$CARGO" deny --version >/dev/null 2>&1; then
        skip "cargo-deny is not installed (cargo install --locked cargo-deny)"
    fi
    "$CARGO" deny check licenses bans sources advisories
}

stage_demo() { ./demo.sh; }

# Fails if anything was not run; that a number misses the paper's is a result.
stage_reproduce() {
    need_rust
    "$CARGO" build ${locked[@]+"${locked[@]}"} --release -p piebald -p piebald-qemu || exit 1
    PYTHONDONTWRITEBYTECODE=1 python3 reproduce/dulo/test_inputs.py || exit 1
    reproduce_quick rainbow "$root/out/reproduce/rainbow/inputs" || exit 1
    reproduce_quick dulo "${XDG_CACHE_HOME:-$HOME/.cache}/piebald/reproduce/dulo" || exit 1
    reproduce_quick mfc "${XDG_CACHE_HOME:-$HOME/.cache}/piebald/reproduce/mfc" || exit 1
    # Of these two the whole quick form takes too long here: the rows that stand for most.
    reproduce_quick srm "${XDG_CACHE_HOME:-$HOME/.cache}/piebald/reproduce/srm" S-2,S-3,S-4,S-18 || exit 1
    reproduce_quick hvr "${XDG_CACHE_HOME:-$HOME/.cache}/piebald/reproduce/hvr" H-14,H-16 \
        libquantum fields sort soplex bwa sphinx tachyon mcf || exit 1
}

# reproduce_quick SYSTEM INPUTS [ROWS [PROGRAM...]]: makes the inputs and runs the quick form, or only
# these rows, for which only these programs are recorded; no target may be left out without a reason.
reproduce_quick() {
    local system=$1 inputs=$2 only=()
    local out=$root/out/reproduce/$system/quick
    shift 2
    if [ $# -gt 0 ]; then only=(--only "$1"); shift; fi
    PIEBALD=$CARGO_TARGET_DIR/release/piebald scripts/stand-ins.sh "$system" "$inputs" "$@" || return 1
    "$CARGO_TARGET_DIR/release/piebald" reproduce "$system" --quick ${only[@]+"${only[@]}"} \
        --inputs "$inputs" --output "$out" || return 1
    python3 - "$out/results.json" ${only[@]+"${only[@]}"} <<'PY'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    targets = json.load(file)["targets"]
left = [t for t in targets if t["verdict"] == "not-run"]
print(f"{len(targets)} targets, not run: {', '.join(t['id'] for t in left) or 'none'}")
# Rows that were asked for by name have their inputs.
unmade = [t["id"] for t in left if sys.argv[2:] and "stand-ins.sh" in (t["why"] or "")]
if unmade:
    print(f"not all of their programs are recorded here: {', '.join(unmade)}")
sys.exit(not targets or any(not t["why"] for t in left) or bool(unmade))
PY
}

stage_readme() {
    need_rust
    scripts/readme-commands.sh
}

# --- the runner ---------------------------------------------------------------

stage_field() { # NAME FIELD: 2 = limit, 3 = meaning
    local entry
    for entry in "${STAGES[@]}"; do
        [ "${entry%%:*}" = "$1" ] && { cut -d: -f"$2" <<<"$entry"; return 0; }
    done
    return 1
}

stage_names() {
    local entry
    for entry in "${STAGES[@]}"; do printf '%s\n' "${entry%%:*}"; done
}

case ${1:-} in
    --stage)
        "stage_${2//-/_}"
        exit
        ;;
    --list)
        for name in $(stage_names); do
            printf '%-12s %5s s  %s\n' "$name" "$(stage_field "$name" 2)" "$(stage_field "$name" 3)"
        done
        exit 0
        ;;
    -h | --help)
        sed -n '2,/^set -u/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
        exit 0
        ;;
esac

chosen=("$@")
[ $# -gt 0 ] || mapfile -t chosen < <(stage_names)
for name in "${chosen[@]}"; do
    stage_field "$name" 2 >/dev/null || {
        warn "unknown stage '$name'; allowed: $(stage_names | tr '\n' ' ')"
        exit 2
    }
done

have timeout || { warn "the program 'timeout' (coreutils) is needed"; exit 2; }
if [[ " ${chosen[*]} " == *" packages "* ]]; then
    # shellcheck disable=SC2086  # lists of package names
    if [ -n "$(missing_packages $REQUIRED $WANTED)" ] || ! find_rust; then
        unlock_sudo
    fi
fi

scratch=$(mktemp -d)
child=
stop() {
    [ -n "$child" ] && kill "$child" 2>/dev/null
    rm -rf "$scratch"
    warn "interrupted"
    exit 130
}
trap stop INT TERM
trap 'rm -rf "$scratch"' EXIT

# What a failed stage said of its failures, from its output: the whole scrolls away.
failures() {
    printf '\n--- %s said:\n' "$1"
    grep -aE -A6 '^error|panicked at|^---- |\.\.\. FAILED|: failed' "$scratch/$1.out" | head -n 80
    printf '... and at its end:\n'
    tail -n 8 "$scratch/$1.out"
}

passed=0 failed=0 skipped=0
rows=() broken=()
for name in "${chosen[@]}"; do
    limit=$(stage_field "$name" 2)
    printf '\n=== %s: %s (limit %s s)\n' "$name" "$(stage_field "$name" 3)" "$limit"
    began=$SECONDS
    # timeout makes its own process group, so whatever a stage started ends with it.
    STAGE_NOTE=$scratch/$name timeout --kill-after=10 "$limit" \
        bash "$root/test.sh" --stage "$name" </dev/null > >(tee "$scratch/$name.out") 2>&1 &
    child=$!
    wait "$child"
    status=$?
    child=
    took=$((SECONDS - began))
    note=$(cat "$scratch/$name" 2>/dev/null)
    case $status in
        0) verdict=passed passed=$((passed + 1)) note= ;;
        "$SKIP")
            if [ "${CI:-}" = true ] && [[ " $ALLOWED_SKIPS " != *" $name "* ]]; then
                verdict=failed failed=$((failed + 1)) note="may not be skipped with CI=true: $note"
            else
                verdict=skipped skipped=$((skipped + 1))
            fi
            ;;
        *)
            verdict=failed failed=$((failed + 1)) note="exit status $status"
            [ "$took" -lt "$limit" ] || note="stopped at its limit of $limit s"
            ;;
    esac
    [ "$verdict" != failed ] || broken+=("$name")
    printf -- '--- %s: %s in %s s%s\n' "$name" "$verdict" "$took" "${note:+ ($note)}"
    rows+=("$(printf '%-12s %-8s %6s s  %s' "$name" "$verdict" "$took" "$note")")
done

for name in ${broken[@]+"${broken[@]}"}; do failures "$name"; done
printf '\n%-12s %-8s %8s  %s\n' stage verdict time note
printf '%s\n' "${rows[@]}"
printf '\n'
if [ "$skipped" -gt 0 ]; then
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
else
    printf '%d passed, %d failed\n' "$passed" "$failed"
fi
[ "$failed" = 0 ]
