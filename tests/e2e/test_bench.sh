#!/usr/bin/env bash
# towerscope bench: it runs, its tables have their rows, wrong usage is told. Nothing here looks at a time.
set -u
fail() { echo "FAIL: $*"; exit 1; }

out=$("$TOWERSCOPE" bench --rounds 1 --seconds 0 --batch 8 --threads 1,2 --towers 1,3 --torch "") || fail "bench: exit $?"
echo "$out"
grep -q '^peak .*GFLOP/s on 1 thread, .* on 2 threads' <<<"$out" || fail "no peak"
[ "$(grep -cE '^ +[12] +[13] +[0-9]+ ' <<<"$out")" = 8 ] || fail "expected 8 rows of rates"
grep -qE '^local3 .* [0-9]+ %' <<<"$out" || fail "no layers"
grep -q 'nan' <<<"$out" && fail "a number is none"

out=$("$TOWERSCOPE" bench --rounds 1 --seconds 0 --batch 8 --threads 1 --towers 1 --isa plain --torch no/such/file) ||
    fail "a bench without PyTorch: exit $?"
grep -q 'no PyTorch beside it: no/such/file' <<<"$out" || fail "not said that the script is missing"
grep -q ', plain$' <<<"$out" || fail "not said which instruction set"

for wrong in "--rounds 0" "--towers 1,x" "--seconds -1" "--threads" "--nothing" "more"; do
    "$TOWERSCOPE" bench $wrong >/dev/null 2>"$TEST_TMP/errors"
    [ $? = 2 ] || fail "bench $wrong: expected exit 2"
    [ -s "$TEST_TMP/errors" ] || fail "bench $wrong: nothing said"
done
"$TOWERSCOPE" bench --towers 9 --batch 8 --rounds 1 --torch "" 2>"$TEST_TMP/errors" >/dev/null && fail "9 towers for 8 images"
grep -q '9 towers' "$TEST_TMP/errors" || fail "not said why"
"$TOWERSCOPE" bench --isa sse9 2>"$TEST_TMP/errors" >/dev/null && fail "an unknown instruction set"
grep -q 'sse9' "$TEST_TMP/errors" || fail "not said which"
"$TOWERSCOPE" bench --help | grep -q -- --rounds || fail "no help"
