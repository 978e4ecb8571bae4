# Checks of the tests that run in a guest; to be sourced.
# shellcheck shell=sh
#
# Every check prints a line that begins with "ok" or "FAILED"; `ends` is 0 only if all are ok.

checks=0 failed=0

check() { # NAME COMMAND...: the command must succeed
    name=$1
    shift
    checks=$((checks + 1))
    if "$@" >/tmp/output 2>&1; then
        echo "ok $name"
    else
        failed=$((failed + 1))
        echo "FAILED $name: $*"
        sed 's/^/    /' /tmp/output
    fi
}

fails() { # NAME STATUS WORDS COMMAND...: the command must end with STATUS and say WORDS
    name=$1 wanted=$2 words=$3
    shift 3
    checks=$((checks + 1))
    "$@" >/tmp/output 2>&1
    status=$?
    if [ "$status" = "$wanted" ] && grep -qF -- "$words" /tmp/output; then
        echo "ok $name ($(head -n 1 /tmp/output))"
    else
        failed=$((failed + 1))
        echo "FAILED $name: status $status, wanted $wanted and \"$words\": $*"
        sed 's/^/    /' /tmp/output
    fi
}

says() { # WORDS COMMAND...: the command succeeds and says WORDS
    words=$1
    shift
    if "$@" >/tmp/said && grep -qF -- "$words" /tmp/said; then return 0; fi
    cat /tmp/said
    return 1
}

ends() { # says how many there were
    echo "checks: $checks, failed: $failed"
    [ "$failed" = 0 ]
}
