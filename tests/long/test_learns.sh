#!/usr/bin/env bash
# test-timeout: 1800
# The tutorial's network learns: Fashion-MNIST as well as an independent program does, the drawn shapes nearly all;
# one layer alone does not learn the shapes. And all of it stays small.
set -u
cd "$TEST_TMP"
failed=0
fail() { echo "FAILED: $*"; failed=1; }
precision() { sed -n 's/.*precision @ 1 = \([0-9.]*\) .*/\1/p' "$1" | tail -n 1; }
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }

"$TOWERSCOPE" train shapes --data generated --model cifar10 --towers 2 --steps 1000 --seed 1 --log-every 100 >shapes 2>&1 ||
    fail "shapes: $(tail -n 3 shapes)"
at_least "$(precision shapes)" 0.95 || fail "generated: $(precision shapes) of 0.95 at 1,000 steps"
"$TOWERSCOPE" train one-layer --data generated --model softmax --steps 1000 --seed 1 --log-every 100 >one 2>&1 ||
    fail "one layer: $(tail -n 3 one)"
at_least "$(precision one)" 0.70 && fail "one layer learns the shapes: $(precision one)"

if [ -d /usr/share/datasets/fashion-mnist ]; then
    "$TOWERSCOPE" train fashion --data fashion-mnist --model cifar10 --towers 2 --batch 128 --steps 2000 --seed 1 \
        --distort on --log-every 100 >fashion 2>&1 &
    pid=$!
    peak=0
    while kill -0 $pid 2>/dev/null; do # the peak of its memory, read while it lives
        now=$(awk '/VmHWM/ { print $2 }' /proc/$pid/status 2>/dev/null)
        peak=${now:-$peak}
        sleep 0.5
    done
    wait $pid || fail "fashion: $(tail -n 3 fashion)"
    at_least "$(precision fashion)" 0.865 || fail "fashion-mnist: $(precision fashion) of 0.865 at 2,000 steps"
    [ "$peak" -gt 0 ] && [ "$peak" -le 400000 ] || fail "fashion-mnist: $peak kB of memory"
    echo "fashion-mnist $(precision fashion), $peak kB"
fi
echo "generated $(precision shapes), one layer $(precision one)"
exit $failed
