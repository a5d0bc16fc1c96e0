#!/usr/bin/env bash
# test-skip-under: thread (it takes too long)
# Checkpoints as others lost them: killed or stopped while saving, a full disk, state that is missing after a resume, a
# schedule that leaps, NaN, hostile files.
# test-timeout: 300
. "$SOURCE/tests/trials/fixtures.sh"
. "$SOURCE/tests/trials/kill_loop.sh"
export TOWERSCOPE_SAVE_SECONDS=0 # a last state that the disk does not take: not waited for
train() { "$TOWERSCOPE" train "$@" </dev/null; }
"$TOWERSCOPE" data make some --images 1000 >out 2>&1 || fail "data make: $(cat out)"
small=(--data some --model softmax --lr 0.01 --batch 32 --eval-every 0)
larger=(--data some --model mlp --batch 32 --momentum 0.9 --eval-every 0) # a checkpoint has 2.8 MB
name() { printf 'runs/%s/checkpoints/step-%08d.safetensors' "$1" "$2"; }
pieces() { find "runs/$1" -name '*.tmp' 2>/dev/null; }

# ---- B1: killed, or asked to stop
wrong=$(kill_loop 10)
[ -z "$wrong" ] || fail "kill loop: $wrong"

stops() { # RUN SIGNALS-FUNCTION WORD OPTION...: start, wait for a word on stdout, send signals, expect a saved run
    local run=$1 word=$2 signals=$3 pid rc
    shift 3
    "$TOWERSCOPE" train "$run" "$@" >"$run.out" 2>"$run.err" </dev/null &
    pid=$!
    await -p $pid grep -qs "$word" "$run.out" || fail "$run: no \"$word\": $(cat "$run.out" "$run.err")"
    train "$run" --resume >"$run.second" 2>&1
    rc=$?
    [ $rc = 3 ] && grep -q "live, process $pid" "$run.second" || fail "$run: a second owner: exit $rc: $(cat "$run.second")"
    "$signals" $pid
    wait $pid
    rc=$?
    [ $rc = 130 ] || fail "$run: exit $rc: $(tail -n 3 "$run.out" "$run.err")"
    [ -z "$(pieces "$run")" ] || fail "$run: left $(pieces "$run")"
    "$TOWERSCOPE" eval "$run" >"$run.eval" 2>&1 || fail "$run: the newest checkpoint: $(cat "$run.eval")"
    local step
    step=$(sed -n '1s/.* after \([0-9]*\) steps.*/\1/p' "$run.eval")
    train "$run" --resume --steps $((step + 1)) --eval-every 0 >"$run.out" 2>&1 || fail "$run: resume: $(tail -n 3 "$run.out")"
    [ -f "$(name "$run" $((step + 1)))" ] || fail "$run: nothing saved after the resume"
}
once() { kill -TERM "$1"; }
thrice() {
    kill -INT "$1"
    sleep 0.1
    kill -INT "$1" 2>/dev/null
    sleep 0.1
    kill -TERM "$1" 2>/dev/null
}
stops evaluating 'precision @ 1' once "${small[@]}" --model cifar10 --batch 4 --eval-every 1 --steps 100000
stops beginning '^run ' once "${small[@]}" --model cifar10 --batch 512 --steps 100000
stops saving 'saved' thrice "${larger[@]}" --checkpoint-every 1 --steps 1000000

# paused, and in a process of its own
"$TOWERSCOPE" run quiet --detach "${small[@]}" --steps 100000000 >out 2>&1 || fail "run --detach: $(cat out)"
ctl() { "$TOWERSCOPE" ctl "$@" --timeout 100; }
ctl quiet pause >out 2>&1 || fail "ctl pause: $(cat out)"
pid=$(tr -dc 0-9 <runs/quiet/lock)
kill -TERM "$pid"
await gone "$pid" || fail "a paused run does not end at SIGTERM"
"$TOWERSCOPE" eval quiet >out 2>&1 || fail "a paused run saved: $(cat out)"
step=$(sed -n '1s/.* after \([0-9]*\) steps.*/\1/p' out)
train quiet --resume --steps $((step + 1)) >out 2>&1 || fail "a run that was paused: $(cat out)"
[ -f "$(name quiet $((step + 1)))" ] || fail "a run that was paused saved nothing after the resume"

# ---- B3: no room to save
(
    ulimit -f 1500
    train full "${larger[@]}" --steps 4 --checkpoint-every 2 >full.out 2>full.err
)
rc=$?
[ $rc = 1 ] || fail "no room: exit $rc"
grep -q "$(name full 2): can't write its [0-9 ]* bytes: File too large" full.err || fail "no room: $(cat full.err)"
[ -z "$(pieces full)" ] && [ ! -e "$(name full 2)" ] || fail "no room: left $(ls runs/full/checkpoints)"
train full "${larger[@]}" --resume --steps 4 --checkpoint-every 2 >full.out 2>&1 || fail "room again: $(cat full.out)"
cp "$(name full 4)" kept
(
    ulimit -f 1500
    train full --resume --steps 6 >full.out 2>full.err
)
[ $? = 1 ] || fail "no room after the resume was not noticed"
cmp -s kept "$(name full 4)" || fail "no room: the checkpoint before it was harmed"
train full --resume --steps 6 >full.out 2>&1 || fail "resume from the one before: $(cat full.out)"

if unshare -Urm true 2>/dev/null; then # a disk that is full, and then is not
    mkdir disk
    export -f await fail gone ctl
    unshare -Urm bash -c '
        mount -t tmpfs -o size=9m tmpfs disk && head -c 4500000 /dev/zero >disk/filler || exit 99
        "$TOWERSCOPE" train d --runs disk --data some --model mlp --batch 32 --momentum 0.9 --eval-every 0 \
            --checkpoint-every 1 --steps 150 --keep 1 >disk.out 2>disk.err </dev/null &
        pid=$!
        await -p $pid grep -qs "No space left on device" disk.err || { kill $pid; exit 98; }
        failed=$(sed -n "s/.*\(step-[0-9]*\.safetensors\): can.t write.*/\1/p" disk.err | head -n 1) # the next one may be under way
        [ -n "$failed" ] && [ ! -e disk/d/checkpoints/$failed.tmp ] || exit 97
        rm disk/filler
        wait $pid || exit 96
        "$TOWERSCOPE" eval d --runs disk >/dev/null || exit 95
        "$TOWERSCOPE" eval d --runs disk | grep -q "after 150 steps" || exit 94
        # the same by command
        rm -r disk/d
        "$TOWERSCOPE" run e --runs disk --detach --data some --model mlp --batch 32 --momentum 0.9 --eval-every 0 \
            --checkpoint-every 0 --steps 100000000 >disk.out 2>disk.err || exit 93
        ctl e save --runs disk >>disk.out 2>>disk.err || exit 92
        head -c 4500000 /dev/zero >disk/filler
        ctl e save --runs disk >>disk.out 2>full.err
        [ $? = 3 ] && grep -q "No space left on device" full.err || exit 91
        "$TOWERSCOPE" eval e --runs disk >/dev/null || exit 90
        rm disk/filler
        ctl e save --runs disk >>disk.out 2>>disk.err || exit 89
        ctl e stop --runs disk >>disk.out 2>>disk.err || exit 88
        await gone $(tr -dc 0-9 <disk/e/lock) || exit 86
        "$TOWERSCOPE" eval e --runs disk >/dev/null || exit 87' </dev/null
    rc=$?
    [ $rc = 0 ] || fail "a full disk: $rc: $(tail -n 3 disk.out disk.err)"
fi

"$TOWERSCOPE" train gone "${small[@]}" --checkpoint-every 1 --steps 100000000 --log-every 100 >gone.out 2>gone.err </dev/null &
pid=$!
await -p $pid grep -qs 'step-00000003' gone.out || fail "gone: $(cat gone.out gone.err)"
kill -STOP $pid
await stands $pid # else it writes into what is being removed
rm -r runs/gone
kill -CONT $pid
wait $pid
rc=$?
[ $rc = 1 ] || fail "a run whose folder was removed: exit $rc"
grep -q "the run's folder was removed: .*/runs/gone is new, with the record and a checkpoint of this step" gone.err || fail "gone: $(tail -n 3 gone.err)"
"$TOWERSCOPE" eval gone >out 2>&1 || fail "gone, and not saved again: $(cat out)"
grep -o '"seq":[0-9]*' runs/gone/events.jsonl | cut -d: -f2 | awk '$1 != NR { exit 1 }' || fail "gone, and not all of its record came again"

as_nobody=()
[ "$(id -u)" != 0 ] || as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
chmod 755 "$TEST_TMP" 2>/dev/null
mkdir -m 777 open
if "${as_nobody[@]}" test -w "$PWD/open" && "${as_nobody[@]}" test -x "$TOWERSCOPE"; then
    "${as_nobody[@]}" "$TOWERSCOPE" train locked --runs open "${small[@]}" --steps 2 >locked.out 2>&1 || fail "locked: $(cat locked.out)"
    chmod 500 open/locked/checkpoints
    "${as_nobody[@]}" "$TOWERSCOPE" train locked --runs open --resume --steps 3 >locked.out 2>&1
    rc=$?
    [ $rc = 1 ] && grep -q 'Permission denied' locked.out || fail "no permission: exit $rc: $(cat locked.out)"
    chmod 700 open/locked/checkpoints
    "${as_nobody[@]}" "$TOWERSCOPE" train locked --runs open --resume --steps 3 >locked.out 2>&1 || fail "permission again: $(cat locked.out)"
fi

# ---- B4: the same bytes as without the stop
printf '@10 stop\n' >ten.script
for towers in 1 2 3; do
    train at-once-$towers "${larger[@]}" --towers $towers --steps 20 >out 2>&1 || fail "$towers towers: $(cat out)"
    train in-two-$towers "${larger[@]}" --towers $towers --steps 20 --script ten.script >out 2>&1 || fail "$towers towers: $(cat out)"
    train in-two-$towers --resume >out 2>&1 || fail "$towers towers, resumed: $(cat out)"
    grep -q 'goes on after step 10.*no setting changed' out || fail "$towers towers: $(grep resume out)"
    cmp "$(name at-once-$towers 20)" "$(name in-two-$towers 20)" || fail "$towers towers: 20 steps are not 10 and 10"
done
printf '@5 towers 3\n' >towers.script
printf '@5 towers 3\n@11 stop\n' >stop.script
printf '@11 pause\n' >pause.script
train whole "${larger[@]}" --towers 2 --steps 20 --script towers.script >out 2>&1 || fail "whole: $(cat out)"
train parts "${larger[@]}" --towers 2 --steps 20 --script stop.script >out 2>&1 || fail "parts: $(cat out)"
train parts --resume >out 2>&1 || fail "parts, resumed: $(cat out)"
grep -q 'goes on after step 11.*no setting changed' out || fail "parts: $(grep resume out)"
cmp "$(name whole 20)" "$(name parts 20)" || fail "a stop after step 11 shows in the checkpoint"
train pausing "${larger[@]}" --towers 3 --steps 14 --script pause.script >out 2>&1
train pausing --resume >out 2>&1 || fail "pausing, resumed: $(cat out)"
train steady "${larger[@]}" --towers 3 --steps 14 >out 2>&1 || fail "steady: $(cat out)"
cmp "$(name steady 14)" "$(name pausing 14)" || fail "a pause at step 11 shows in the checkpoint"

# ---- B5: schedule and step number
plan=("${small[@]}" --lr-decay 0.5 --decay-epochs 0.5 --steps 100 --log-every 1000)
columns() { grep '"event":"step"' "runs/$1/events.jsonl" | sed -E 's/.*"step":([0-9]+),"epoch":([^,]*),"lr":([^,]*),.*"loss":([^,]*),.*/\1 \2 \3 \4/'; }
train unbroken "${plan[@]}" >out 2>&1 || fail "unbroken: $(cat out)"
printf '@37 stop\n' >stop.script
train broken "${plan[@]}" --script stop.script >out 2>&1 || fail "broken: $(cat out)"
train broken --resume >out 2>&1 || fail "broken, resumed: $(cat out)"
[ "$(columns unbroken | wc -l)" = 100 ] || fail "columns: $(columns unbroken | head -n 3)"
diff <(columns unbroken) <(columns broken) >diff.out || fail "a stop at 37 shows: $(head -n 4 diff.out)"
find runs/broken -type f ! -name lock ! -name owner -printf '%p %T@ %s\n' | sort >before
train broken --resume >out 2>&1 || fail "a finished run: exit $?"
grep -q 'done: its 100 steps are behind it and nothing was written' out || fail "a finished run says: $(cat out)"
find runs/broken -type f ! -name lock ! -name owner -printf '%p %T@ %s\n' | sort >after
cmp -s before after || fail "a finished run was written to"
train broken --resume --steps 104 --towers 4 >out 2>&1 || fail "broken, longer: $(cat out)"
grep -q 'goes on after step 100, .*changed: towers from 2 to 4, steps from 100 to 104; a step is one update with 32 images' out ||
    fail "what changed: $(grep resume out)"
[ "$(columns broken | tail -n 4 | cut -d' ' -f1 | xargs)" = '101 102 103 104' ] || fail "steps leap: $(columns broken | tail -n 4)"

# ---- B7: NaN
train wild "${larger[@]}" --lr 1e20 --steps 50 --checkpoint-every 1 >out 2>err
rc=$?
[ $rc = 1 ] || fail "lr 1e20: exit $rc: $(cat err)"
"$TOWERSCOPE" eval wild >out 2>&1 || fail "lr 1e20 left a bad checkpoint: $(cat out)"
train wild --resume --lr 0.01 --steps 50 >out 2>&1 || fail "lr 0.01 after that: $(tail -n 3 out)"
grep -q 'lr from 1e+20 to 0.01' out || fail "lr 0.01 after that: $(grep resume out)"

# ---- B8: hostile files, and another network's
mkdir hostile
header() { # FILE LENGTH(as eight bytes) TEXT
    printf "$2" >"hostile/$1"
    printf '%s' "$3" >>"hostile/$1"
    head -c 24 /dev/zero >>"hostile/$1"
}
entry='{"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}' # 57 bytes
header whole_but_foreign.safetensors '\x39\0\0\0\0\0\0\0' "$entry"
header length_huge.safetensors '\0\0\0\0\0\0\0\x80' "$entry"
header length_max.safetensors '\xff\xff\xff\xff\xff\xff\xff\xff' "$entry"
header length_zero.safetensors '\0\0\0\0\0\0\0\0' "$entry"
header past_the_end.safetensors '\x40\x42\x0f\0\0\0\0\0' "$entry"
header shape_huge.safetensors '\x49\0\0\0\0\0\0\0' '{"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,24]}}'
header page.safetensors '' '<!DOCTYPE html><html><body>Not found</body></html>'
: >hostile/empty.safetensors
printf '\x08\x27\x08\0\0\0\0\0' >hostile/deep.safetensors
head -c 534280 /dev/zero | tr '\0' '[' >>hostile/deep.safetensors
for file in hostile/*; do
    (
        case $BUILD in *asan | *tsan) ;; *) ulimit -v 4000000 ;; esac
        timeout 200 "$TOWERSCOPE" eval "$file"
    ) >out 2>err
    rc=$?
    [ $rc = 1 ] && [ "$(wc -l <err)" = 1 ] && grep -q "$file: " err && [ ! -s out ] || fail "$file: exit $rc: $(cat out err)"
done
make_cifar10 ten 40
make_cifar100 hundred 200
train classes --data ten --model softmax --batch 32 --steps 2 --eval-every 0 >out 2>&1 || fail "ten classes: $(cat out)"
train classes --resume --steps 4 --data hundred >out 2>err
rc=$?
[ $rc = 1 ] && grep -q 'softmax_linear/weights is F32 \[1728, 10\]; the model softmax needs F32 \[1728, 100\]' err || fail "100 classes: exit $rc: $(cat err)"

finish
