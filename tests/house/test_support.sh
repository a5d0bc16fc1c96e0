#!/usr/bin/env bash
# A shell test fails whatever way its check does (tests/support/test.sh): one that can't fail would be noticed nowhere else.
. "$SOURCE/tests/support/test.sh"
try() { # EXIT NAME LINES: a test of these lines ends with that
    mkdir "$2"
    printf '. "$SOURCE/tests/support/test.sh"\n%s\n' "$3" >"$2.sh"
    TEST_TMP=$PWD/$2 bash "$2.sh" >"$2.out" 2>&1
    local rc=$?
    [ $rc = "$1" ] || fail "$2: exit $rc, not $1: $(cat "$2.out")"
}
try 0 fine 'expect 2 "no command" frobnicate; await true; [ -z "$(ls -A)" ] && fail "no files"; false; finish'
try 1 failed 'fail once; true; finish'
try 1 in-a-subshell '(fail once); finish'
try 1 in-a-pipe 'echo | { read -r; fail once; }; finish'
try 1 in-a-substitution 'x=$(fail once); finish'
try 1 exported 'export -f fail; bash -c "fail once"; finish'
try 1 elsewhere 'cd /; fail once; finish'
try 1 fatal 'fatal once; finish'
try 1 other-code 'expect 3 "no command" frobnicate; finish'
try 1 other-words 'expect 2 "such words" frobnicate; finish'
try 1 in-vain 'true & wait $!; await -p $! false; finish'
try 1 cut-short 'exit 0; finish'
try 1 without-an-end 'true'
try 1 unset 'echo $never; finish'
try 1 failed-and-skipped 'fail once; exit 77'
try 77 skipped 'exit 77'
try 1 cleared-away 'clean_up() { : >../cleared; }; fail once; finish'
[ -e cleared ] || fail 'clean_up was not called'

# an engine that a test leaves running
try 0 engine '"$TOWERSCOPE" run one --detach --data generated --model softmax >out 2>&1 || fail "$(cat out)"
head -n 1 runs/one/lock >pid; finish'
await gone "$(cat engine/pid)"
[ "$(cat engine/pid)" -gt 1 ] || fail "no engine was started"
finish
