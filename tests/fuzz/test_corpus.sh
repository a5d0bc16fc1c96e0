#!/usr/bin/env bash
# Every fuzz target over its seed corpus, and what was found by fuzzing before (tests/fuzz/corpus/NAME).
. "$SOURCE/tests/support/test.sh"
cd "$SOURCE" || exit 1
count=0
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    corpus=tests/fuzz/corpus/${name#fuzz_}
    files=("$corpus"/*)
    [ -e "${files[0]}" ] || { fail "$name has no seeds in $corpus"; continue; }
    "$BUILD/tests/fuzz/$name" "${files[@]}" >"$TEST_TMP/out" 2>&1 || fail "$name: $(tail -n 30 "$TEST_TMP/out")"
    count=$((count + ${#files[@]}))
done
[ $count -gt 0 ] || fail 'nothing was tried'
[ -z "$(find "$TEST_TMP" -name 'towerscope-fuzz.*')" ] || fail 'a folder was left behind'
finish
