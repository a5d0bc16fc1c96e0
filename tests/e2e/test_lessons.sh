#!/usr/bin/env bash
# Every lesson runs unattended, its checks hold, and its sentences are complete.
. "$SOURCE/tests/support/test.sh"
lesson() { "$TOWERSCOPE" lesson "$@" </dev/null; }

lesson >list 2>err || fail "lesson: exit $?"
names=$(sed -n 's/^  \([a-z-]*\) .*/\1/p' list)
[ "$(echo "$names" | wc -l)" = 8 ] || fail "eight lessons are listed: $(cat list)"
for name in $names; do
    lesson "$name" --auto >"$name" 2>err || fail "$name: exit $?: $(cat err)"
    [ ! -s err ] || fail "$name: $(cat err)"
    grep -q '[{}]\|unknown\|NaN' "$name" && fail "$name has an open figure: $(grep '[{}]\|unknown\|NaN' "$name")"
    grep -q ' $' "$name" && fail "$name has blanks at the end of a line"
    [ "$(wc -l <"$name")" -ge 12 ] || fail "$name is short: $(cat "$name")"
done
[ ! -e runs ] || fail "a lesson left $(find runs)"

# the same numbers each time
lesson sum-or-mean --auto >again 2>err
cmp -s sum-or-mean again || fail "sum-or-mean tells other numbers: $(diff sum-or-mean again)"

# what the question asks is answered
grep -q 'different losses of one tower' adding-up || fail "whose losses are added"
tr '\n' ' ' <adding-up | grep -q 'The losses of the other towers are not added' || fail "whose losses are not"
tr '\n' ' ' <adding-up | grep -q 'a gradient can be taken of one number only' || fail "why they are added"
tr '\n' ' ' <adding-up | grep -q 'averages gradients, never losses' || fail "what average_gradients averages"
tr '\n' ' ' <adding-up | grep -q 'the decay counts once in the average' || fail "why the decay counts once"
tr '\n' ' ' <sum-or-mean | grep -q 'a vector 4 times as long, with a cosine of 1' || fail "why a sum is four times the step"
tr '\n' ' ' <sum-or-mean | grep -q 'a sum of 4 is 4 times their mean' || fail "why a sum is longer"
tr '\n' ' ' <uneven-shards | grep -q 'a third of a quarter, 1/12, and one of tower 3 half of a quarter, 1/8' || fail "what an image weighs"
tr '\n' ' ' <uneven-shards | grep -q 'weighs each tower by its share' || fail "what uneven shards do"

lesson no-scpe >out 2>err && fail "a lesson that is not there"
grep -q 'there is no lesson "no-scpe"; the nearest is no-scope' err || fail "$(cat err)"
lesson one-batch two >out 2>err
[ $? = 2 ] || fail "two names"
finish
