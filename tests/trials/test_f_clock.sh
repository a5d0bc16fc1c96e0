#!/usr/bin/env bash
# F8: the clock on the wall is set forward and back while a run trains. Rates, times and saves come from one that only
# goes forward; what is stored stays the wall's.
. "$SOURCE/tests/trials/fixtures.sh"
make_idx data 50
run() { # NAME
    "$BUILD/towerscope-faults" train "$1" --data data --model softmax --batch 10 --steps 200 --eval-every 0 --checkpoint-every 50 --keep 9 \
        --log-every 20 >"$1.out" 2>&1 || fail "$1: exit $?: $(tail -n 3 "$1.out")"
}
values() { grep -ao "\"$2\":-\?[0-9.e+-]*" "runs/$1/events.jsonl" | cut -d: -f2; } # RUN FIELD
export TOWERSCOPE_CLOCK_JUMPS=
run steady
export TOWERSCOPE_CLOCK_JUMPS=7200,-10800 # by turns, every fiftieth time that somebody looks
run jumps
# the trick works: the wall's clock in the record goes back
values jumps time | awk 'NR > 1 && $1 < last - 3600 { back++ } { last = $1 } END { exit !back }' || fail 'the clock did not jump'
values steady time | awk 'NR > 1 && $1 < last { exit 1 } { last = $1 }' || fail 'the clock of the control jumped'
for field in seconds images_per_second; do
    values jumps $field | awk 'NF == 0 || $1 < 0 || $1 > 1e9 { exit 1 }' || fail "$field: $(values jumps $field | sort -g | sed -n '1p;$p')"
done
values jumps seconds | awk '$1 > 60 { exit 1 }' || fail "a step of $(values jumps seconds | sort -g | tail -n 1) seconds"
[ "$(ls runs/jumps/checkpoints | wc -l)" = "$(ls runs/steady/checkpoints | wc -l)" ] || fail "checkpoints: $(ls runs/jumps/checkpoints)"
grep -aE 'examples/sec' jumps.out | grep -qE '[(-]-|inf|nan' && fail "lines: $(grep examples jumps.out | head -n 2)"
for step in 20 200; do
    "$TOWERSCOPE" replay jumps --at $step --svg screen.svg >out 2>&1 || fail "replay: $(cat out)"
    grep -oE '>[^<]*<' screen.svg | tr -d '\n' | tr -s '<>' ' ' | head -c 120 >words
    grep -q 'img/s' words && ! grep -qE -- '-[0-9.]+ (s|min|h|d|img)' words || fail "step $step shows: $(head -c 200 words)"
done
"$TOWERSCOPE" diff steady jumps >out 2>&1 || fail "the clock changed more than times: $(head -n 3 out)"
finish
