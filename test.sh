#!/usr/bin/env bash
# Everything that is checked before a change is accepted, in named stages.
#
#   ./test.sh              every stage
#   ./test.sh STAGE...     only these
#   ./test.sh --long       the stages that take too long for each change
#   ./test.sh --list       names, limits and meanings of both kinds
#   ./test.sh --record ... writes the stages' times to bench/ci.md or bench/ci-long.md as well: a row
#                          for each stage that was run, those of others stay
#
# Installs what is missing (see scripts/setup.sh), goes on after a failing
# stage, and ends with a table and the line `N passed, N failed`. A stage that
# cannot run here says why and counts as skipped; with CI=true it counts as
# failed unless it is listed in ALLOWED_SKIPS.
#
# A stage may take three times what it took on a quiet machine (bench/ci.md), or its
# least limit below, whichever is more, times the load: what a loop that takes a second
# on a quiet machine takes when the stage begins.
set -u

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"
cd "$root" || exit 1

# name:least limit in seconds:what it does. The least limit is for a clean machine, which
# fetches and builds what a second run finds.
STAGES=(
    "packages:900:install what is missing"
    "shell:60:shellcheck of every script"
    "fmt:60:rustfmt, check only"
    "clippy:900:lints of the whole workspace, warnings are errors"
    "docs:900:rustdoc of the whole workspace, warnings are errors"
    "build:1200:release build"
    "install:600:cargo install leaves a command that records, from any folder"
    "tests:1800:unit, property and integration tests"
    "recorder:600:tests of the recorder with real programs, under QEMU"
    "recorder-root:600:tests of the recorder that only root can run"
    "browser:300:tests of reports in a real browser"
    "simulators:600:the machine model beside independent simulators"
    "foreign-traces:300:tests on traces that are fetched, as their terms forbid to pack them"
    "model:600:what threads share, in every order in which they may meet"
    "fuzz:1200:fuzz targets on their corpora and on random input"
    "bare-metal:900:the policy core without an operating system"
    "guest:900:the Linux module and its verbs in the distribution's kernel, under QEMU"
    "licences:900:licences, sources and bans of dependencies, by cargo-deny"
    "advisories:300:published advisories about dependencies, by cargo-deny"
    "golden:600:outputs that may not change unless it is meant, their JSON Schemas, and pages of results"
    "demo:900:demo.sh"
    "reproduce:1800:rows of the papers' experiments in their quick form"
    "readme:1200:the commands of README.md and of the tutorials in a fresh clone, and what they show"
)
LONG_STAGES=(
    "buddy-oracle:1800:a hundred million operations on the coloured buddy, beside its oracle"
    "large-cache:600:a page cache of a million pages"
    "fuzz-long:3600:fuzz targets on thirty times as much random input"
    "controls:1800:a hundred studies in which nothing can happen, and what they claim"
    "rainbow:7200:Rainbow's experiments in their quick form, all rows"
    "srm:7200:SRM-buffer's experiments in their quick form, all rows"
    "dulo:7200:DULO's experiments in their quick form, all rows"
    "mfc:7200:MFC's experiments in their quick form, all rows"
    "hvr:10800:HVR's experiments in their quick form, all rows"
    "kills:1800:a paper that is killed fifty times ends with the same numbers"
    "guest-boots:1800:the machine model in real guests"
    "package:3600:a release of a clone, its tarball, and its Debian package in fresh roots of Debian 12 and 13"
    "dkms:1800:the package of the kernel module, built by DKMS for the kernels of a fresh Debian 13, and loaded"
    "recorder-qemu:1200:QEMU built from its source package, and the recorder's tests under it"
    "selftests:10800:the kernel's own tests of groups and memory, in each state of the module"
    "patched:7200:the module on a kernel that has its free pages by colour itself, which is built"
    "soak:14400:the module under load that is drawn by eight seeds, a quarter of an hour each"
    "debug-kernel:14400:the module in a debugging kernel, with injected failures"
    "debian-13:14400:demo.sh and all of test.sh in a new Debian 13"
)

# What these need is not to be had everywhere: the database of advisories and traces of
# third parties lie outside the package registries; mounting needs more than a user's rights.
ALLOWED_SKIPS="advisories foreign-traces recorder-root"

# Exit status by which a stage says that it cannot run here.
SKIP=77

# What a compiler notes for the next build of changed code is never read on a clean machine, nor are
# the lines of tests: a test that fails says where it did.
[ "${CI:-}" != true ] || export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0

REQUIRED="ca-certificates git build-essential pkg-config python3 qemu-user zstd bzip2 grep coreutils"
WANTED="python3-venv python3-dev python3-jsonschema valgrind chromium shellcheck sparse"

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
    local scripts=(test.sh demo.sh .ci/run scripts/*.sh kernel/*.sh kernel/dkms/choose-core kernel/test/*.sh crates/linux/guest/*.sh)
    for script in "${scripts[@]}"; do
        bash -n "$script" || exit 1
    done
    have shellcheck || skip "shellcheck is not installed (syntax alone was checked)"
    printf '%s\0' "${scripts[@]}" | xargs -0 -n 4 -P "$(nproc)" shellcheck -x -P SCRIPTDIR
}

stage_fmt() {
    need_rust
    local alone rc=0
    cargo_tool fmt --all --check || rc=1
    for alone in kernel/core scripts/bare-metal bench/buddy; do
        cargo_tool fmt --manifest-path "$alone/Cargo.toml" --check || rc=1
    done
    return "$rc"
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
    # But for the checks of this repository itself, which run in `tests`.
    "$CARGO" build ${locked[@]+"${locked[@]}"} --workspace --exclude piebald-house --release
}

stage_install() {
    need_rust
    need_programs qemu-user
    local folder=$STAGE_NOTE.installed
    # Else all dependencies are resolved anew, and what is built already is of no use.
    "$CARGO" install --quiet --locked --path crates/cli --root "$folder" || exit 1
    cd "$folder" || exit 1
    [ "$(ls bin)" = piebald ] || { warn "more was installed than the command: $(ls bin)"; exit 1; }
    env -u PIEBALD_PLUGIN bin/piebald record -o true.pbr -- true || exit 1
    bin/piebald trace info true.pbr || exit 1
    bin/piebald man man && bin/piebald completions bash | bash -n
}

stage_tests() {
    need_rust
    # The dev profile: optimised a little, with debug assertions and overflow
    # checks, which a release build would leave out.
    "$CARGO" test ${locked[@]+"${locked[@]}"} --workspace --no-fail-fast || exit 1
    "$CARGO" test --locked --manifest-path kernel/core/Cargo.toml --lib
}

# asked_for TARGETS... -- FILTERS...: tests that are ignored unless they are asked for, as they
# need more than a clone. Fails if there are none. They are those of the whole workspace, as the stage
# `tests` has built it, unless crates are named: cargo compiles a crate by itself with other features.
asked_for() {
    need_rust
    local log=$STAGE_NOTE.log targets=()
    while [ "$1" != -- ]; do targets+=("$1"); shift; done
    shift
    [[ " ${targets[*]} " = *" -p "* ]] || targets+=(--workspace)
    "$CARGO" test ${locked[@]+"${locked[@]}"} --no-fail-fast "${targets[@]}" -- --ignored "$@" 2>&1 |
        tee -a "$log"
    [ "${PIPESTATUS[0]}" = 0 ] || exit 1
    grep -q '^test .* \.\.\. ok$' "$log" || { warn "no test was run"; exit 1; }
}

need_programs() { # PACKAGE...
    local missing
    missing=$(missing_packages "$@")
    [ -z "$missing" ] || skip "missing: $missing"
}

stage_recorder() {
    need_programs qemu-user valgrind build-essential
    # Tests keep caches of their own, where no QEMU was built.
    local qemu
    qemu=$(recorder_qemu) || exit 1
    record_under "$qemu"
}

# record_under QEMU: what recording promises, under this one.
record_under() {
    say "recording under $("$1" --version | head -n 1)"
    export PIEBALD_QEMU=$1
    asked_for --test all -- --skip as_root counts:: differences:: limits:: odd_programs:: processes:: references:: \
        study:: record::
}

# The oldest suite whose QEMU the distribution builds without plugins.
NEWER_QEMU=trixie

stage_recorder_qemu() {
    need_programs valgrind build-essential
    have apt-get || skip "QEMU is built from Debian's source package, and there is no apt-get"
    local newest
    newest=$(scripts/qemu.sh build "$NEWER_QEMU") || exit 1
    record_under "$newest"
}

stage_recorder_root() {
    [ "$(id -u)" = 0 ] || skip "needs to be root"
    mount_works || skip "root may not mount here"
    need_programs qemu-user build-essential python3
    local without=()
    counts_events || {
        say "not run: counters::tests::a_child_s_faults_are_counted_once_it_has_ended_as_root: the system lets nobody count events"
        without=(--skip counters::)
    }
    asked_for --lib --test all -- ${without[@]+"${without[@]}"} as_root
}

# Whether root may count page faults (perf_event_open); in some containers nobody may.
counts_events() {
    python3 - <<'PY'
import ctypes
import struct
import sys

# A software event of this process: type 1, config 2.
attributes = struct.pack("<IIQ", 1, 112, 2) + bytes(96)
sys.exit(ctypes.CDLL(None).syscall(298, attributes, 0, -1, -1, 0) < 0)
PY
}

mount_works() {
    local point=$STAGE_NOTE.mount
    mkdir -p "$point" && mount -t tmpfs none "$point" 2>/dev/null && umount "$point"
}

stage_browser() {
    need_programs chromium
    asked_for --test all -- browser::
}

stage_simulators() {
    need_programs python3-venv valgrind build-essential
    asked_for --lib --test all -- simulators:: smm_py_writes_the_stream
}

stage_foreign_traces() {
    local status=0
    scripts/fetch-traces.sh || status=$?
    [ "$status" != "$SKIP" ] || skip "the traces could not be fetched (scripts/fetch-traces.sh)"
    [ "$status" = 0 ] || exit 1
    asked_for --test all -- fetched_
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
    PIEBALD_FUZZ_CASES=${PIEBALD_FUZZ_CASES:-3000} \
        "$CARGO" test ${locked[@]+"${locked[@]}"} --workspace --tests -- fuzz_ 2>&1 | tee "$log"
    [ "${PIPESTATUS[0]}" = 0 ] || exit 1
    local targets
    targets=$(grep -c '^test .*fuzz_.* \.\.\. ok$' "$log")
    say "fuzz targets run: $targets"
    [ "$targets" -gt 0 ]
}

stage_fuzz_long() { PIEBALD_FUZZ_CASES=100000 stage_fuzz; }

stage_bare_metal() { scripts/bare-metal.sh; }

# Fails, and says so, if the distribution serves no kernel that the module knows. Each guest keeps one processor busy; what
# is first and what is second take about as long.
stage_guest() {
    install_packages build-essential e2fsprogs || exit 1
    scripts/guest.sh fetch || exit 1
    kernel/build.sh || exit 1
    guest_second >"$STAGE_NOTE.second" 2>&1 &
    local second=$! begun=$SECONDS broke=()
    kernel/test.sh || broke+=("kernel/test.sh: failed with status $?")
    say "the module took $((SECONDS - begun)) s"
    crates/linux/guest/counters.sh || broke+=("crates/linux/guest/counters.sh: failed with status $?")
    say "the module and the counters took $((SECONDS - begun)) s"
    wait "$second" || broke+=("the verbs and the soak: failed")
    say "the verbs and a soak took $((SECONDS - begun)) s or less"
    cat "$STAGE_NOTE.second"
    [ ${#broke[@]} = 0 ] || { warn "${broke[@]}"; exit 1; }
}

guest_second() {
    local status=0
    crates/linux/guest/test.sh || { status=1; warn "crates/linux/guest/test.sh: failed"; }
    kernel/soak.sh 180 1 || { status=1; warn "kernel/soak.sh: failed"; }
    return "$status"
}

# It is no Debian package: built once, and kept.
CARGO_DENY=0.20.2

deny() {
    need_rust
    local tools=${XDG_CACHE_HOME:-$HOME/.cache}/piebald/tools/cargo-deny-$CARGO_DENY
    if [ ! -x "$tools/bin/cargo-deny" ]; then
        say "building cargo-deny $CARGO_DENY"
        # Without optimisation: it runs for seconds.
        CARGO_PROFILE_DEV_DEBUG=0 "$CARGO" install --quiet --locked --debug --root "$tools" \
            --target-dir "$CARGO_TARGET_DIR/cargo-deny" "cargo-deny@$CARGO_DENY" || return 1
        rm -rf "$CARGO_TARGET_DIR/cargo-deny"
    fi
    PATH=$RUST_DIR:$PATH "$tools/bin/cargo-deny" "$@"
}

stage_licences() { deny check --hide-inclusion-graph licenses bans sources; }

stage_advisories() {
    # As cargo-deny has it by default.
    local database=https://github.com/RustSec/advisory-db
    timeout 60 git ls-remote --exit-code --quiet "$database" HEAD >/dev/null 2>&1 ||
        skip "the database of advisories cannot be fetched: $database"
    deny check --hide-inclusion-graph advisories
}

stage_golden() {
    need_rust
    "$CARGO" build ${locked[@]+"${locked[@]}"} --release -p piebald || exit 1
    need_programs python3-jsonschema
    local piebald=$CARGO_TARGET_DIR/release/piebald outputs=$STAGE_NOTE.outputs
    export PYTHONDONTWRITEBYTECODE=1
    scripts/test_golden.py && scripts/test_results_pages.py && scripts/results-pages.py check || exit 1
    # They were made with one thread each. Those of `hw` are held by a test of its own.
    scripts/golden.py check --without hw --threads 2 --piebald "$piebald" --outputs "$outputs" || exit 1
    scripts/check-schemas.py "$piebald" "$outputs"
}

stage_demo() { ./demo.sh; }

# Rows of the quick forms that stand for most: whole, MFC's alone takes 17 to 20 minutes,
# and HVR's need eight recordings of minutes (the papers' stages of `--long`). A number that misses the paper's is a result; a row that was not run fails.
RAINBOW_ROWS=R-1,R-2,R-3,R-4,R-5,R-7,R-8,R-9,R-B2,R-B3
DULO_ROWS=D-1,D-2,D-3,D-10,D-13
MFC_ROWS=M-10,M-12,M-13,M-16
SRM_ROWS=S-2,S-3,S-4,S-18
# Rows of programs on the machine model run with fewer references than the quick form has: what fails here
# is a row that does not run. Their numbers are those of the quick form (the papers' stages of `--long`, results pages).
BUDGET=1M

stage_reproduce() {
    build_to_reproduce
    # Two at a time: making inputs and recording programs keep one processor busy. Only the first
    # installs packages.
    reproduce_second >"$STAGE_NOTE.second" 2>&1 &
    local second=$! status=0 begun=$SECONDS
    budget=$BUDGET reproduce_quick rainbow "$RAINBOW_ROWS" && budget=$BUDGET reproduce_quick srm "$SRM_ROWS" || status=1
    say "rainbow and srm took $((SECONDS - begun)) s"
    wait "$second" || status=1
    say "the others took $((SECONDS - begun)) s or less"
    cat "$STAGE_NOTE.second"
    [ "$status" = 0 ] || exit 1
    # Of Rainbow those that do not depend on the number of references.
    golden_rows --rows "mfc=$MFC_ROWS" --rows "dulo=$DULO_ROWS" --rows "rainbow=R-1,R-7"
}

reproduce_second() {
    reproduce_quick dulo "$DULO_ROWS" && reproduce_quick mfc "$MFC_ROWS"
}

stage_rainbow() { whole_paper rainbow; }
stage_srm() { whole_paper srm; }
stage_dulo() { whole_paper dulo; }
stage_mfc() { whole_paper mfc; }
stage_hvr() { whole_paper hvr; }

# whole_paper PAPER: all rows of its quick form, and those that are kept beside what is kept.
whole_paper() {
    build_to_reproduce
    reproduce_quick "$1" || exit 1
    case $1 in
        rainbow | dulo | mfc) golden_rows --case "$1" ;;
    esac
}

stage_kills() { asked_for --release -p piebald --test all -- store::; }

build_to_reproduce() {
    need_rust
    "$CARGO" build ${locked[@]+"${locked[@]}"} --release -p piebald || exit 1
    PYTHONDONTWRITEBYTECODE=1 python3 reproduce/dulo/test_inputs.py || exit 1
}

# What needs no recordings that are made anew gives the same digits everywhere.
golden_rows() { # OPTIONS...
    PYTHONDONTWRITEBYTECODE=1 scripts/golden.py check reproduce --results "$root/out/reproduce" "$@" \
        --piebald "$CARGO_TARGET_DIR/release/piebald"
}

# reproduce_quick SYSTEM [ROWS]: makes the inputs and runs the quick form, or only these rows; no target
# may be left out without a reason.
reproduce_quick() {
    local system=$1 only=() fewer=()
    [ -z "${budget:-}" ] || fewer=(--budget "$budget")
    local inputs=${XDG_CACHE_HOME:-$HOME/.cache}/piebald/reproduce/$system out=$root/out/reproduce/$system/quick
    # Its programs are built here, of this commit's sources.
    [ "$system" != rainbow ] || inputs=$root/out/reproduce/rainbow/inputs
    local began=$SECONDS
    shift
    [ $# = 0 ] || only=(--only "$1")
    PIEBALD=$CARGO_TARGET_DIR/release/piebald scripts/stand-ins.sh "$system" "$inputs" || return 1
    say "$system: inputs took $((SECONDS - began)) s"
    # All of it is run here, whatever was kept before.
    "$CARGO_TARGET_DIR/release/piebald" reproduce "$system" --quick --store none ${only[@]+"${only[@]}"} ${fewer[@]+"${fewer[@]}"} \
        --inputs "$inputs" --output "$out" || return 1
    say "$system: took $((SECONDS - began)) s"
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

stage_buddy_oracle() { asked_for --release -p piebald-policy --test all -- buddy_oracle::; }

stage_large_cache() { asked_for --release -p piebald-os-model --test all -- file_large::; }

stage_controls() { asked_for --release -p piebald-lab --test all -- truth::; }

stage_guest_boots() { asked_for --release -p piebald-guest --test boots --; }

stage_package() {
    [ "$(id -u)" = 0 ] || skip "needs to be root"
    mount_works || skip "root may not mount here"
    need_programs debootstrap
    need_rust
    mkdir -p "$STAGE_NOTE.package"
    scripts/test-release.sh "$STAGE_NOTE.package" || exit 1
    scripts/test-package.sh "$STAGE_NOTE.package"/piebald_*.deb bookworm &&
        scripts/test-package.sh "$STAGE_NOTE.package"/piebald_*.deb trixie
}

stage_dkms() {
    [ "$(id -u)" = 0 ] || skip "needs to be root"
    mount_works || skip "root may not mount here"
    need_rust
    need_programs debootstrap qemu-system-x86 busybox-static cpio
    export DEBFULLNAME=${DEBFULLNAME:-Tester} DEBEMAIL=${DEBEMAIL:-tester@example.org}
    scripts/package-dkms.sh "$STAGE_NOTE.package" || exit 1
    scripts/test-dkms.sh "$STAGE_NOTE.package"/*.deb
}

stage_selftests() { kernel/selftests.sh; }

stage_soak() { kernel/soak.sh 900 1 2 3 4 5 6 7 8; }

stage_patched() { kernel/patched.sh test; }

stage_debug_kernel() { kernel/debug.sh; }

stage_debian_13() { scripts/debian-13.sh ${RECORDS:+--record}; }

# --- the runner ---------------------------------------------------------------

# Iterations of the loop that takes a second on a quiet machine, and the seconds that it takes
# now, in thousandths, at least 1000: one loop on each processor, the slowest counts.
CALIBRATION=300000
load_now() {
    local began=$EPOCHREALTIME ended processor i n=0 took
    for ((processor = $(nproc); processor > 0; processor--)); do
        (for ((i = 0; i < CALIBRATION; i++)); do n=$((n ^ i)); done) &
    done
    wait
    ended=$EPOCHREALTIME
    took=$(((${ended/./} - ${began/./}) / 1000))
    printf '%d\n' "$((took > 1000 ? took : 1000))"
}

thousandths() { printf '%d.%d' "$(($1 / 1000))" "$(($1 % 1000 / 100))"; }

stage_field() { # NAME FIELD: 2 = least limit, 3 = meaning
    local entry
    for entry in "${STAGES[@]}" "${LONG_STAGES[@]}"; do
        [ "${entry%%:*}" = "$1" ] && { cut -d: -f"$2" <<<"$entry"; return 0; }
    done
    return 1
}

stage_names() { # ENTRY...
    local entry
    for entry in "$@"; do printf '%s\n' "${entry%%:*}"; done
}

# Seconds of a stage on a quiet machine: what was recorded, less the load that there was; 0 = never.
quiet_seconds() { # NAME
    cat bench/ci.md bench/ci-long.md 2>/dev/null | awk -F'|' -v name=" \`$1\` " '
        $2 == name && $3 ~ /passed/ { quiet = $5 > 1 ? $4 / $5 : $4 }
        END { printf "%d\n", quiet }'
}

# limit_of NAME LOAD: seconds, under a load in thousandths.
limit_of() {
    local least quiet
    least=$(stage_field "$1" 2)
    quiet=$(quiet_seconds "$1")
    [ "$((3 * quiet))" -le "$least" ] || least=$((3 * quiet))
    printf '%d\n' "$((least * $2 / 1000))"
}

list() {
    local name
    printf 'stages:\n'
    for name in $(stage_names "${STAGES[@]}"); do list_one "$name"; done
    printf 'with --long:\n'
    for name in $(stage_names "${LONG_STAGES[@]}"); do list_one "$name"; done
}

list_one() { printf '%-15s %5s s  %s\n' "$1" "$(limit_of "$1" 1000)" "$(stage_field "$1" 3)"; }

STAGE_TABLE='| stage | verdict | seconds | load at its start | when, commit, processors |'

# record FILE ROW...: puts the rows into the table behind the file's mark. Rows of stages that were not
# run stay, unless all were.
record() {
    local file=$1 before=$1
    shift
    [ -z "$complete" ] || before=/dev/null
    {
        sed '/^<!-- recorded -->$/q' "$file"
        printf '\n'
        table_with "$before" "$STAGE_TABLE" "$@"
    } >"$scratch/record" || return 1
    cat "$scratch/record" >"$file"
}

record_to='' long='' complete=''
while [ $# -gt 0 ]; do
    case $1 in
        --stage)
            "stage_${2//-/_}"
            exit
            ;;
        --list) list; exit 0 ;;
        --long) long=1 ;;
        --record) record_to=bench/ci.md ;;
        -h | --help)
            sed -n '2,/^set -u/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        -*) warn "unknown option $1; allowed: --long, --record, --list, --help"; exit 2 ;;
        *) break ;;
    esac
    shift
done

chosen=("$@")
[ $# -gt 0 ] || complete=1
if [ -n "$long" ]; then
    [ -z "$record_to" ] || record_to=bench/ci-long.md
    [ $# -gt 0 ] || mapfile -t chosen < <(stage_names "${LONG_STAGES[@]}")
fi
[ ${#chosen[@]} -gt 0 ] || mapfile -t chosen < <(stage_names "${STAGES[@]}")
for name in "${chosen[@]}"; do
    stage_field "$name" 2 >/dev/null || {
        warn "unknown stage '$name'; allowed: $(stage_names "${STAGES[@]}" "${LONG_STAGES[@]}" | tr '\n' ' ')"
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
    grep -aE -A6 '^error|panicked at|^---- |\.\.\. FAILED|^ *FAILED|^guest: (stopped|the kernel|ended|QEMU ended)|: failed' "$scratch/$1.out" | head -n 80
    printf '... and at its end:\n'
    tail -n 8 "$scratch/$1.out"
}

# Sets `used` to the seconds of processors that all stages so far have used, with what they started and
# waited for. A subshell would tell its own children's.
count_used() {
    times >"$scratch/times"
    used=$(tail -n 1 "$scratch/times" | awk -F'[ms ]+' '{ printf "%d\n", $1 * 60 + $2 + $3 * 60 + $4 }')
}

passed=0 failed=0 skipped=0 start=$SECONDS
rows=() records=() broken=()
for name in "${chosen[@]}"; do
    load=$(load_now)
    limit=$(limit_of "$name" "$load")
    printf '\n=== %s: %s (load %s, limit %s s)\n' "$name" "$(stage_field "$name" 3)" "$(thousandths "$load")" "$limit"
    count_used
    began=$SECONDS used_before=$used
    # timeout makes its own process group, so whatever a stage started ends with it. Guests have
    # limits of their own, in whole multiples.
    STAGE_NOTE=$scratch/$name RECORDS=$record_to PIEBALD_TIME_SCALE=$(((load + 999) / 1000)) timeout --kill-after=10 "$limit" \
        bash "$root/test.sh" --stage "$name" </dev/null > >(tee "$scratch/$name.out") 2>&1 &
    child=$!
    wait "$child"
    status=$?
    child=
    took=$((SECONDS - began))
    count_used
    used=$((used - used_before))
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
    rows+=("$(printf '%-15s %-8s %6s s %6s s  load %s  %s' "$name" "$verdict" "$took" "$used" "$(thousandths "$load")" "$note")")
    records+=("| \`$name\` | $verdict | $took | $(thousandths "$load") | $(measured_here) |")
done

for name in ${broken[@]+"${broken[@]}"}; do failures "$name"; done
printf '\n%-15s %-8s %8s %8s\n' stage verdict time 'of CPUs'
printf '%s\n' "${rows[@]}"
printf '%-15s %-8s %6s s\n\n' all '' "$((SECONDS - start))"
if [ -n "$record_to" ]; then
    [ -z "$complete" ] || records+=("| all |  | $((SECONDS - start)) |  | $(measured_here) |")
    record "$record_to" "${records[@]}" || warn "$record_to: not written"
fi
if [ "$skipped" -gt 0 ]; then
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
else
    printf '%d passed, %d failed\n' "$passed" "$failed"
fi
[ "$failed" = 0 ]
