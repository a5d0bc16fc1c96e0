#!/usr/bin/env bash
# test-timeout: 1800
# The tutorial's network on 60,000 real images: at least 86.5 % after 2,000 steps (an independent program: 87.2),
# in at most 400 MB.
. "$SOURCE/tests/support/test.sh"
[ -d /usr/share/datasets/fashion-mnist ] || { echo 'the package dataset-fashion-mnist is not installed'; exit 77; }
"$TOWERSCOPE" train fashion --data fashion-mnist --model cifar10 --towers 2 --batch 128 --steps 2000 --seed 1 \
    --distort on --log-every 100 >out 2>&1 &
pid=$!
peak=0
while kill -0 $pid 2>/dev/null; do # the peak of its memory, read while it lives
    now=$(awk '/VmHWM/ { print $2 }' /proc/$pid/status 2>/dev/null)
    peak=${now:-$peak}
    sleep 0.5
done
wait $pid || fail "$(tail -n 3 out)"
precision=$(sed -n 's/.*precision @ 1 = \([0-9.]*\) .*/\1/p' out | tail -n 1)
awk -v p="$precision" 'BEGIN { exit !(p >= 0.865) }' || fail "precision $precision of 0.865"
[ "$peak" -gt 0 ] && [ "$peak" -le 400000 ] || fail "$peak kB of memory"
echo "precision @ 1 = $precision, at most $peak kB of memory"
finish
