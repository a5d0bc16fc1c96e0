#!/usr/bin/env bash
# kill -9 at 300 random moments of a run whose towers change and that saves all the time: it always resumes, no step
# behind a checkpoint is lost, and in the end it is the run that was never killed, byte for byte.
# test-timeout: 1800
. "$SOURCE/tests/support/test.sh"
. "$SOURCE/tests/trials/kill_loop.sh"
wrong=$(kill_loop "${KILLS:-300}")
[ -z "$wrong" ] || fail "$wrong"
cat kills
finish
