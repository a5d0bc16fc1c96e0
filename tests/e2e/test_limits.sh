#!/usr/bin/env bash
# A run under limits that others have set: small stacks, few descriptors, no room for the last state, things in the way.
# test-timeout: 200
# test-skip-under: thread (it is of files and processes; threads are looked at elsewhere)
. "$SOURCE/tests/support/test.sh"
unset TOWERSCOPE_SAVE_SECONDS
small=(--data generated --model softmax --lr 0.01 --eval-every 0)
train() { "$TOWERSCOPE" train "$@" "${small[@]}" >out 2>err </dev/null; }
checkpoint() { printf 'runs/%s/checkpoints/step-%08d.safetensors' "$1" "$2"; }

# ---- a small stack: all of it works in threads that have more
(ulimit -s 64 && train stack --model cifar10 --batch 8 --steps 2) || fail "a small stack: exit $?: $(cat err)"
(ulimit -s 64 && exec "$TOWERSCOPE" doctor >out 2>err) || fail "a small stack: doctor: exit $?: $(cat err)"
(ulimit -s 64 && exec "$TOWERSCOPE" eval stack >out 2>err) || fail "a small stack: eval: exit $?: $(cat err)"
(ulimit -s 64 && exec "$TOWERSCOPE" train waits "${small[@]}" --steps 100000000 >out 2>err </dev/null) &
pid=$!
await -p $pid grep -q 'step 10, ' out || fail "a small stack: $(cat out err)"
kill -TERM $pid
wait $pid
rc=$?
[ $rc = 130 ] || fail "a small stack, interrupted: exit $rc: $(cat out err)"
[[ $BUILD == */asan ]] || (ulimit -s 64 && ulimit -v 60000 && exec "$TOWERSCOPE" ls >out 2>err) # no memory for them: said, or done
rc=$?
[ $rc -lt 124 ] || fail "a small stack and little memory: exit $rc"

# ---- few descriptors: refused before anything is made
(ulimit -n 14 && train few --steps 5)
rc=$?
[ $rc = 1 ] && grep -q 'a run may have 14 files open here (ulimit -n), and needs 32' err && [ ! -e runs/few ] ||
    fail "few descriptors: exit $rc: $(cat out err)"
(ulimit -n 32 && train enough --steps 5) || fail "32 descriptors: exit $?: $(cat err)"

# ---- the last state can't be saved and waiting is no help: it ends at once, and what was saved before stays
train stays --steps 5 || fail "stays: $(cat err)"
cp "$(checkpoint stays 5)" kept
mkdir -p "$(checkpoint stays 9).tmp/something"
train stays --resume --steps 9
rc=$?
[ $rc = 1 ] && grep -q '^towerscope: step 9 is not saved: .*step-00000009.safetensors.tmp: can.t make this file.*File exists; step 5 is the newest that is saved$' err ||
    fail "something in the way: exit $rc: $(cat out err)"
cmp -s kept "$(checkpoint stays 5)" || fail 'the checkpoint before it was harmed'
rm -r "$(checkpoint stays 9).tmp"
(ulimit -f 60; train large --steps 5)
rc=$?
[ $rc = 1 ] && grep -q '^towerscope: step 5 is not saved: .*too large; no step before it is saved$' err || fail "too large: exit $rc: $(cat out err)"

# ---- a pipe in the place of a file that is written aside holds up nobody
mkfifo "$(checkpoint stays 10).tmp" runs/stays/config.ini.tmp
train stays --resume --steps 10 || fail "pipes in the way: exit $?: $(cat err)"
[ -f "$(checkpoint stays 10)" ] && [ ! -p runs/stays/config.ini.tmp ] || fail "pipes in the way: $(ls runs/stays runs/stays/checkpoints)"
rm -f runs/stays/engine.log
mkfifo runs/stays/engine.log
"$TOWERSCOPE" run stays --detach --resume --steps 11 >out 2>err && fail 'a pipe for a log'
grep -q 'engine.log is a pipe.*move it away' err || fail "a pipe for a log: $(cat err)"

# ---- no room: it waits for that, and says how to end without
if unshare -Urm true 2>/dev/null; then
    mkdir disk
    export -f await fail
    unshare -Urm bash -c '
        begin() { "$TOWERSCOPE" train "$@" --runs disk --data generated --model softmax --lr 0.01 --eval-every 0 \
            --record-every 1000 >out 2>err </dev/null & pid=$!; }
        mount -t tmpfs -o size=100k tmpfs disk || exit 99
        begin done --steps 5
        await -p $pid grep -q "is done, but step 5 can.t be saved: .*No space.*Make room.*ctl done stop --discard.*no step before it is saved" err || exit 98
        mount -o remount,size=4m disk || exit 97
        "$TOWERSCOPE" ctl done save --runs disk >saved 2>&1 # or it has tried by itself meanwhile
        wait $pid || exit 96
        [ -e disk/done/checkpoints/step-00000005.safetensors ] && grep -q "^done after 5 steps" out || exit 95
        rm -r disk/done
        mount -o remount,size=100k disk || exit 94
        begin ends --steps 100000000
        await -p $pid grep -q "step 10, " out || exit 93
        kill -TERM $pid
        await -p $pid grep -q "the run ends, but step [0-9].* can.t be saved: " err || exit 92
        kill -TERM $pid
        wait $pid
        [ $? = 1 ] && grep -q "^towerscope: step [0-9]* is not saved: .*; no step before it is saved$" err || exit 91
        # one in the background that is told to end waits, too, until it is told again
        rm -r disk/ends
        back() {
            "$TOWERSCOPE" run back --detach --runs disk --data generated --model softmax --lr 0.01 --eval-every 0 \
                --record-every 1000 --checkpoint-every 0 --steps 100000000 >out 2>err || exit 87
            pid=$(cat disk/back/lock)
            trap "kill -9 $pid 2>/dev/null" EXIT
            await -p $pid grep -q "\"event\":\"step\"" disk/back/events.jsonl || exit 86
            kill -TERM $pid
            await -p $pid grep -q "the run ends, but step [0-9].* can.t be saved: .*another signal, the end of 600 seconds" disk/back/engine.log || exit 85
        }
        gone() { "$TOWERSCOPE" ls --runs disk 2>/dev/null | grep -q "^back  *ended"; }
        back
        kill -TERM $pid
        await gone || exit 84
        "$TOWERSCOPE" ls --runs disk >out 2>err
        grep -qE "^back +ended +[1-9][0-9]* +2 +[0-9.]+ +- " out || exit 83
        "$TOWERSCOPE" attach back --runs disk >out 2>err && exit 82
        grep -q "ended after step [0-9]*, none of it saved" err || exit 81
        rm -r disk/back
        back
        mount -o remount,size=4m disk || exit 80
        "$TOWERSCOPE" ctl back save --runs disk >saved 2>&1
        await gone || exit 79
        "$TOWERSCOPE" ls --runs disk >out 2>err
        awk "/^back +ended / { good = \$3 == \$6 } END { exit !good }" out || exit 78
        trap - EXIT
        # a start that fails at its very end leaves nothing behind: here there may be no sixth file
        rm -r disk/back
        mount -o remount,nr_inodes=6 disk || exit 90
        "$TOWERSCOPE" run none --detach --runs disk --data generated --model softmax >out 2>err && exit 89
        grep -q "engine.log: No space" err && [ -z "$(ls -A disk)" ] || exit 88' </dev/null
    rc=$?
    [ $rc = 0 ] || fail "no room: $rc: $(cat out err)"
fi

# ---- a time of the environment that is none
TOWERSCOPE_SAVE_SECONDS=10m train minutes --steps 1 && fail 'ten minutes are taken for a number of seconds'
grep -q 'TOWERSCOPE_SAVE_SECONDS is "10m"' err && [ ! -e runs/minutes ] || fail "a time that is none: $(cat err)"

# ---- config.ini edited between a stop and a resume: it is said how a setting is changed
train edited --steps 3 || fail "a run to edit: $(cat err)"
sed -i 's/^towers = .*/towers = 3/; s/^lr = .*/lr = 0.25/' runs/edited/config.ini
train edited --resume --steps 4 --lr 0.125 || fail "after an edit: $(cat err)"
grep -q 'config.ini was changed since, .* options what it changes (towers from 2 to 3)$' err &&
    grep -qx 'towers = 2' runs/edited/config.ini || fail "an edit is not told: $(cat err)"
echo '[' >>runs/edited/config.ini
train edited --resume --steps 5 && grep -q 'config.ini:.*the run goes on with the settings of its checkpoint' err ||
    fail "an edit that can't be read: $(cat err)"
printf '@6 towers 4\n' >script
train edited --resume --steps 7 --script script && train edited --resume --steps 8 && [ ! -s err ] ||
    fail "what was not edited is told: $(cat err)"

# ---- a script on a resumed run: what lies behind it is left out, and said once
printf '@1 note early\n@3 set lr 0.02\n@7 note late\n' >script
train scripted --steps 5 --script script
[ $? = 3 ] || fail "a script: $(cat err)"
grep -q '"text":"note late".*"status":"refused"' runs/scripted/events.jsonl || fail 'a command whose step did not come'
train scripted --resume --steps 8 --script script || fail "a script again: $(cat err)"
[ "$(grep -c 'script: the run goes on after step 5; left out, as behind it: @1 note early; @3 set lr 0.02$' err)" = 1 ] ||
    fail "a script again: $(cat err)"
[ "$(grep -c '"event":"note"' runs/scripted/events.jsonl)" = 2 ] || fail 'a script again: the notes'
for ((i = 0; i < 40; i++)); do echo '@2 note a long line that is one of very many'; done >script
train scripted --resume --steps 9 --script script || fail "a long script again: $(cat err)"
grep -qE 'left out, as behind it: @2 note a long .* and [0-9]+ more$' err || fail "a long script again: $(cat err)"

finish
