#!/usr/bin/env bash
# Every fuzz target over its seed corpus, and what was found by fuzzing before (tests/fuzz/corpus/NAME).
set -u
cd "$SOURCE"
bad=0 count=0
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    corpus=tests/fuzz/corpus/${name#fuzz_}
    files=("$corpus"/*)
    [ -e "${files[0]}" ] || { echo "FAIL: $name has no seeds in $corpus"; bad=1; continue; }
    "$BUILD/tests/fuzz/$name" "${files[@]}" >"$TEST_TMP/out" 2>&1 || { echo "FAIL: $name"; tail -n 30 "$TEST_TMP/out"; bad=1; }
    count=$((count + ${#files[@]}))
done
[ $count -gt 0 ] || { echo 'FAIL: nothing was tried'; bad=1; }
[ -z "$(find "$TEST_TMP" -name 'towerscope-fuzz.*')" ] || { echo 'FAIL: a folder was left behind'; bad=1; }
exit $bad
