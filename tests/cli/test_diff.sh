#!/usr/bin/env bash
# `towerscope diff` and `ls`: what they find, what they leave out, and what they do with damaged records.
. "$SOURCE/tests/support/test.sh"
train() { "$TOWERSCOPE" train "$@" --data generated --model softmax --eval-every 0 --lr 0.01 >/dev/null 2>err || fail "train $*: $(cat err)"; }

# ---- the same twice; another seed; another run of the same with a command
train one --steps 30 --seed 3 --checkpoint-every 10
train two --steps 30 --seed 3 --checkpoint-every 10
train other --steps 30 --seed 4 --checkpoint-every 10
expect 0 'nothing differs' diff one two
expect 0 'nothing differs' diff runs/one runs/two/events.jsonl
expect 1 'step, step 1: loss: ' diff one other
expect 1 'run_start' diff one other
expect 1 'more differences' diff one other
expect 0 'nothing differs in 30 steps' diff --steps one two
expect 4 'no run or file "nine"' diff one nine
expect 2 'two runs' diff one
expect 2 'no option "--all"' diff one two --all
printf '@10 note here\n' >session
train noted --steps 30 --seed 3 --checkpoint-every 10 --script session
expect 1 'event: step | note' diff one noted
expect 1 '--steps' diff one noted
expect 0 'nothing differs in 30 steps' diff --steps one noted

# ---- resumed, and with other towers: the same steps
train resumed --steps 20 --seed 3 --checkpoint-every 10
train resumed --resume --steps 30
expect 0 'nothing differs in 30 steps' diff --steps one resumed
train short --steps 25 --seed 3
expect 1 'step 26: only in one' diff --steps one short
expect 0 'nothing differs in 25 steps' diff --steps one short --until 25
train three --steps 30 --seed 3 --towers 3
expect 0 'nothing differs in 30 steps' diff --steps two three --tolerance 1e-4

# ---- a torn line and a hole are no differences of what is there
head -c -20 runs/two/events.jsonl >torn
expect 1 'more events: only in one' diff one ./torn
sed 7d runs/two/events.jsonl | sed '9s/.*/{"event":}/' >holes
expect 1 'only in one' diff --steps one ./holes
grep -q "can't be read" err || fail "damaged lines are told: $(cat out err)"
: >empty
expect 1 'nothing to compare' diff ./empty ./empty

# ---- ls
expect 0 'ended' ls
[ "$(grep -c ' ended ' out)" = 7 ] || fail "seven runs: $(cat out)"
grep -qE '^one +ended +30 +2 +[0-9.]+ ' out || fail "the line of one: $(cat out)"
"$TOWERSCOPE" ls --json >out || fail "ls --json"
grep -q '"name": "three"' out && grep -q '"towers": 3' out || fail "json: $(cat out)"
mkdir runs/crashed runs/empty runs/.hidden runs/not-a-run
head -n 12 runs/one/events.jsonl >runs/crashed/events.jsonl
printf '{"event":"st' >>runs/crashed/events.jsonl
: >runs/empty/events.jsonl
expect 0 'crashed' ls
grep -qE '^crashed +crashed +[0-9]+ ' out || fail "a crashed run: $(cat out)"
grep -qE '^empty +empty +- +- +- ' out || fail "an empty run: $(cat out)"
grep -q 'hidden\|not-a-run' out && fail "what is no run is listed"
truncate -s 5G runs/empty/events.jsonl # holes; only the end is looked at
expect 0 'empty' ls
mkdir "$TEST_TMP/bad"
mkdir "$TEST_TMP/bad/$(printf 'x\033[31m')"
: >"$TEST_TMP/bad/$(printf 'x\033[31m')/events.jsonl"
"$TOWERSCOPE" ls --runs bad >out 2>&1
grep -q $'\x1b' out && fail "an escape sequence on the terminal"
expect 0 'no runs of "nowhere": there is no such folder' ls --runs nowhere
mkdir bare
expect 0 'no runs; ' ls --runs bare
expect 2 'no option' ls --all
finish
