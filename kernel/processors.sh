# Sourced, after setup.sh, by the scripts that test the module in guests: their processors. Four that run in
# parallel, where there is an emulator that can do that (guest.sh emulator); else two that take turns.
# shellcheck shell=bash

# settle_processors ROOT [--turns]: sets `cpus`, and `processors`, the options of guest.sh that go with it; with
# --turns they take turns in any case. Says which.
settle_processors() {
    local emulator=''
    [ "${2:-}" = --turns ] || emulator=$("$1/scripts/guest.sh" emulator) || return 1
    # shellcheck disable=SC2034  # for whoever sources this
    case $emulator in
        *' parallel')
            cpus=4 processors=(--parallel)
            say "four processors in parallel: $emulator"
            ;;
        *)
            cpus=2 processors=()
            say "two processors that take turns${emulator:+: $emulator}"
            ;;
    esac
}
