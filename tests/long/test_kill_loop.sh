#!/usr/bin/env bash
# kill -9 at 100 random moments of a run that saves at each step: it always resumes.
# test-timeout: 600
set -u
. "$SOURCE/tests/trials/kill_loop.sh"
cd "$TEST_TMP"
wrong=$(kill_loop 100)
[ -z "$wrong" ] || {
    echo "$wrong"
    exit 1
}
