# What a shell test begins with: . "$SOURCE/tests/support/test.sh". It is in its own empty folder from here on.
#
# A check that fails says so by fail, wherever it stands (also in a subshell), and the test goes on. The last line of a
# test is `finish`: one that ends before it has failed, unless it exits with 77 (skipped). Engines that are still running
# then are ended; what else has to be cleared away stands in a function clean_up.
set -u
cd "$TEST_TMP" || exit 1

fail() { # WORDS...
    echo "FAIL: $*"
    : >"$TEST_TMP/.failed" # a file, so that subshells can say it too
}

# Nothing that follows would make sense.
fatal() { # WORDS...
    fail "$@"
    exit 1
}

# Run the program: its exit code, and words in what it says. What it printed stays in the files out and err.
expect() { # CODE WORDS ARGUMENT...
    local code=$1 words=$2 rc
    shift 2
    timeout 200 "$TOWERSCOPE" "$@" >out 2>err </dev/null
    rc=$?
    [ $rc = "$code" ] || fail "$*: exit $rc, not $code: $(head -n 5 err)"
    cat out err | grep -qF -- "$words" || fail "$*: \"$words\" is not in: $(head -n 5 out err)"
}

# Until a command succeeds; with -p, no longer than a process lives. A failure when it never does, after five minutes at
# least: a machine with much else to do may take that long.
await() { # [-p PID] COMMAND...
    local pid= i
    [ "$1" != -p ] || { pid=$2; shift 2; }
    test_waits="$*"
    for ((i = 0; i < 15000; i++)); do
        "$@" 2>/dev/null && test_waits= && return 0
        [ -z "$pid" ] || kill -0 "$pid" 2>/dev/null || break
        sleep 0.02
    done
    test_waits=
    "$@" && return 0 # it may have come about just before the process ended
    fail "waited in vain for: $*"
    return 1
}

# Has the process ended?
gone() { # PID
    ! kill -0 "$1" 2>/dev/null
}

# Does it stand, all of it, after a SIGSTOP?
stands() { # PID
    ! cat /proc/"$1"/task/*/status | grep '^State:' | grep -qv 'T (stopped)'
}

finish() {
    test_finished=yes
    exit 0
}

end_engines() {
    local lock pid
    for lock in */*/lock; do
        pid=$(head -n 1 "$lock" 2>/dev/null)
        [ -z "$pid" ] || [ ! "/proc/$pid/exe" -ef "$TOWERSCOPE" ] || kill -9 "$pid" 2>/dev/null
    done
}

test_ended() {
    local rc=$?
    cd "$TEST_TMP" || exit 1
    [ "$(type -t clean_up)" != function ] || clean_up
    end_engines
    [ $rc != 0 ] || [ -n "${test_finished-}" ] || fail "the test ended before its last line${test_waits:+, waiting for: $test_waits}"
    [ ! -e "$TEST_TMP/.failed" ] || exit 1
    exit $rc
}
trap test_ended EXIT
