#!/usr/bin/env bash
# A live run whose folder, lock or record somebody moves or removes; a disk that is full when the run is to stop; an engine
# that listens where `ctl` does not look.
# test-timeout: 300
. "$SOURCE/tests/support/test.sh"
options=(--data generated --model softmax --lr 0.01 --eval-every 0 --checkpoint-every 0)
run() { "$TOWERSCOPE" run "$@" --detach "${options[@]}" >out 2>&1 || fail "run $1: $(cat out)"; }
ctl() { "$TOWERSCOPE" ctl --timeout 120 "$@" >out 2>err; }
says() { grep -qs -- "$2" "runs/$1/events.jsonl"; }
state() { "$TOWERSCOPE" ls 2>/dev/null | awk -v name="$1" '$1 == name { print $2 }'; }
is() { [ "$(state "$1")" = "$2" ]; }
alarms() { grep '"event":"alarm"' "runs/$1/events.jsonl"; }
# the record of a run: numbers without holes, and its beginning and end
whole() { # RUN
    grep -o '"seq":[0-9]*' "runs/$1/events.jsonl" | cut -d: -f2 |
        awk '$1 != NR { print "line " NR " is number " $1; exit 1 }' || fail "$1: a hole in the record"
    head -n 1 "runs/$1/events.jsonl" | grep -q run_start || fail "$1: the record does not begin with run_start"
    tail -n 1 "runs/$1/events.jsonl" | grep -q run_end || fail "$1: the record does not end with run_end"
}

# ---- moved: it is the same run, under its new name
run first
mv runs/first runs/second
await says second 'the run.s folder was moved from .*/runs/first to .*/runs/second: all goes on there'
ctl second save || fail "save after a move: $(cat err)"
ls runs/second/checkpoints/*.safetensors >/dev/null || fail "nothing was saved where the folder is now"
[ ! -e runs/first ] || fail "something was made where the folder was"
ctl first status && fail "a run is still called by the old name"
is second training || fail "ls: $("$TOWERSCOPE" ls)"
"$TOWERSCOPE" train second --resume --steps 1 >out 2>&1
[ $? = 3 ] && grep -q 'the run is live, process .* owns it: `towerscope attach` shows it' out || fail "a second engine on a run that was moved: $(cat out)"
run first # another run may have the old place
ctl second status || fail "the old place taken: $(cat err)"
ctl first stop || fail "the run in the old place: $(cat err)"

# ---- its lock removed: still held, by the folder, and the file comes again
pid=$(head -n 1 runs/second/lock)
rm runs/second/lock
is second training || is second paused || fail "without its lock file the run is $(state second)"
"$TOWERSCOPE" train second --resume --steps 1 >out 2>&1
[ $? = 3 ] && grep -q 'the run is live' out || fail "a second engine on a run without a lock file: $(cat out)"
await grep -qs "^$pid$" runs/second/lock
await says second 'somebody removed .*/runs/second/lock: it is made again'
ctl second status || fail "after the lock was removed: $(cat err)"

# ---- its record removed, or put elsewhere: all of it comes again
rm runs/second/events.jsonl
await says second 'somebody removed or renamed events.jsonl of this run: it is made again'
mv runs/second/events.jsonl elsewhere.jsonl
await says second 'somebody removed or renamed events.jsonl of this run: it is made again, with all its lines'
says second run_start || fail "the record does not hold what was written before"

# ---- the folder removed: paused, with all that is in memory on the disk again
ctl second pause || fail "pause: $(cat err)"
ctl second resume || fail "resume: $(cat err)"
pid=$(cat runs/second/lock)
kill -STOP "$pid"
await stands "$pid" # else it may still write into what is being removed
rm -r runs/second
kill -CONT "$pid"
await says second "the run's folder was removed: .* is new, with the record and a checkpoint of this step"
await is second paused
[ "$(ls runs/second/checkpoints/*.safetensors | wc -l)" = 1 ] || fail "not one checkpoint: $(ls runs/second/checkpoints)"
grep -q '^model = softmax$' runs/second/config.ini || fail "config.ini did not come again"
[ -s runs/second/engine.log ] || fail "engine.log did not come again"
ctl second resume || fail "resume after that: $(cat err)"
ctl second stop || fail "stop after that: $(cat err)"
is second ended || fail "stopped, and it is $(state second)" # and can be gone on with at once
whole second
step=$(ls runs/second/checkpoints | sed -n '$s/step-0*\([0-9]*\)\..*/\1/p')
"$TOWERSCOPE" train second --resume --steps $((step + 2)) "${options[@]}" >out 2>&1 || fail "resume in the end: $(tail -n 2 out)"

# ---- only the checkpoints removed: what was saved and is gone is saved again
run third
ctl third pause && ctl third save || fail "third: $(cat err)"
rm -r runs/third/checkpoints
ctl third save || fail "save again: $(cat err)"
ls runs/third/checkpoints/*.safetensors >/dev/null 2>&1 || fail "\"saved already\", and there is nothing: $(cat out)"
rm -r runs/third/checkpoints
ctl third stop || fail "stop: $(cat err)"
ls runs/third/checkpoints/*.safetensors >/dev/null 2>&1 || fail "stopped, and nothing is saved"

# ---- whatever the umask: nobody else may write
(
    umask 000
    run loose --steps 3 --checkpoint-every 1
)
await is loose ended
[ -z "$(find runs/loose -perm /022)" ] || fail "others may write: $(find runs/loose -perm /022)"
(
    umask 077
    run private --steps 3
)
await is private ended
[ -z "$(find runs/private -perm /077)" ] || fail "the umask is not kept: $(find runs/private -perm /077)"

# ---- an engine that listens elsewhere: said at once
XDG_STATE_HOME=$PWD/other run elsewhere
ctl elsewhere status --timeout 100000 # the test's own limit is shorter
rc=$?
[ $rc = 3 ] && grep -q "process $(head -n 1 runs/elsewhere/lock) of the user .* listens in $PWD/other/towerscope/live.*set XDG_STATE_HOME=$PWD/other$" err ||
    fail "another state folder: exit $rc: $(cat err)"
XDG_STATE_HOME=$PWD/other ctl elsewhere stop || fail "what was said helps not: $(cat err)"
XDG_STATE_HOME=$PWD/other run theirs
sed 's/^user .*/user 65534 nobody/' runs/theirs/owner >owner && cat owner >runs/theirs/owner # as if another had started it
ctl theirs status --timeout 100000
rc=$?
[ $rc = 3 ] && grep -q "is of the user nobody (65534), who alone may send it commands" err || fail "another user's: exit $rc: $(cat err)"
XDG_STATE_HOME=$PWD/other ctl theirs stop || fail "theirs: $(cat err)"

# ---- a full disk: what can't be saved is not called stopped
if unshare -Urm true 2>/dev/null; then
    mkdir disk
    export -f await fail
    unshare -Urm bash -c '
        mount -t tmpfs -o size=4m tmpfs disk || exit 99
        fill() { head -c 8000000 /dev/zero >disk/filler 2>/dev/null; }
        run() { "$TOWERSCOPE" run "$@" --runs disk --detach --data generated --model mlp --eval-every 0 --keep 1 >out 2>&1; }
        ctl() { "$TOWERSCOPE" ctl "$@" --runs disk --timeout 120 >out 2>err; }
        state() { "$TOWERSCOPE" ls --runs disk | awk -v name="$1" "\$1 == name { print \$2 }"; }
        is() { [ "$(state "$1")" = "$2" ]; }
        run full --checkpoint-every 0 || exit 98
        fill
        ctl full stop && exit 97
        grep -q "can.t be saved, so the run stays, paused: .*No space left on device; make room and stop again, or stop --discard" err ||
            { cat err; exit 96; }
        ctl full status && grep -q "^full: paused" out || { cat out; exit 95; }
        ctl full stop && exit 94
        rm disk/filler
        ctl full stop || exit 93 # room: saved and ended
        await is full ended || exit 92
        ls disk/full/checkpoints/*.safetensors >/dev/null || exit 91
        # forced; the disk takes not even the end of the record, and it is an orderly end all the same
        rm -r disk/full
        run forced --checkpoint-every 0 || exit 90
        fill
        words=$(printf "%0180d" 0)
        for ((i = 0; i < 12; i++)); do ctl forced note "$words" || exit 90; done # beyond what its last page takes
        ctl forced stop && exit 89
        ctl forced stop --discard || { cat err; exit 88; }
        grep -q "is not saved" out || { cat out; exit 87; }
        await is forced ended || { state forced; exit 86; }
        tail -n 1 disk/forced/events.jsonl | grep -q run_end && exit 85 # else nothing was tried
        rm disk/filler
        # one that is done waits for room, and says that once
        rm -r disk/forced
        echo "@5 pause" >pause.script
        run done --checkpoint-every 0 --steps 20 --script pause.script || exit 87
        waits() { ctl done status && grep -q "^done: paused, step 5 of 20" out; }
        await waits || exit 86
        fill
        ctl done resume || exit 85
        is_done() { ctl done status && grep -q "^done: paused, step 20 of 20" out; }
        await is_done || exit 84
        ctl done save && exit 83
        rm disk/filler
        ctl done save # or it has tried by itself meanwhile
        await is done ended || exit 81
        "$TOWERSCOPE" eval done --runs disk | grep -q "after 20 steps" || exit 80
        # each step fails to save: told at the 1st, 10th, 100th time
        rm -r disk/done
        run flood --checkpoint-every 1 --steps 1000000 || exit 79
        ctl flood pause || exit 79
        fill
        step() { ctl flood status --json && sed "s/.*\"step\":\([0-9]*\).*/\1/" out; }
        full=$(step)
        ctl flood resume || exit 79
        goes_on() { [ "$(step)" -gt $((full + 12)) ]; }
        await goes_on || exit 77
        rm disk/filler
        ctl flood stop || exit 78
        cp disk/flood/events.jsonl disk/flood/engine.log .
        ' </dev/null
    rc=$?
    [ $rc = 0 ] || fail "a full disk: $rc: $(cat out err)"
    if [ $rc = 0 ]; then
        n=$(grep -c 'No space left' engine.log) # the disk may have no room for the log, too
        [ "$n" -le 14 ] || fail "failed saves are told $n times in the log"
        n=$(grep 'No space left' events.jsonl | grep -c '"event":"alarm"')
        [ "$n" -ge 1 ] && [ "$n" -le 14 ] || fail "failed saves are told $n times in the record"
    fi
fi
finish
