#!/usr/bin/env bash
# kill -9 at 300 random moments of a run whose towers change and that saves all the time: it always resumes, no step
# behind a checkpoint is lost, and in the end it is the run that was never killed, byte for byte.
# test-timeout: 1800
set -u
. "$SOURCE/tests/trials/kill_loop.sh"
cd "$TEST_TMP"
wrong=$(kill_loop "${KILLS:-300}")
[ -z "$wrong" ] || {
    echo "$wrong"
    exit 1
}
cat kills
