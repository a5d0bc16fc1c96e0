#!/usr/bin/env bash
# Every test that doc/TRIALS.md and SECURITY.md name is there, and so is the part of it behind the colon.
. "$SOURCE/tests/support/test.sh"
cd "$SOURCE" || exit 1
count=0
for file in $(grep -ohE '\b(tests/)?[a-z0-9]+/[a-z0-9_]+\.(c|sh)\b' doc/TRIALS.md SECURITY.md | sed 's,^tests/,,' | sort -u); do
    count=$((count + 1))
    [ -f "tests/$file" ] || fail "tests/$file is named, but is not there"
done
while IFS=: read -r file parts; do
    for part in ${parts//,/ }; do
        grep -qE "^(static void $part\(|# -+ $part\b)" "tests/$file" || fail "tests/$file has no $part"
    done
done < <(grep -ohE '[a-z]+/test_[a-z0-9_]+\.(c|sh): [A-Za-z0-9_]+(, [a-z0-9]+_[a-z0-9_]+)*' doc/TRIALS.md | grep -v 'long/')
[ $count -gt 15 ] || fail "only $count tests are named"
finish
