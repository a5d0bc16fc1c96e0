#!/usr/bin/env bash
# The engine as a process of its own: started, steered, left, killed, resumed; found from any folder.
# test-timeout: 400
. "$SOURCE/tests/support/test.sh"
run() { "$TOWERSCOPE" run --detach --data generated --model softmax --lr 0.01 --eval-every 0 --checkpoint-every 0 "$@"; }
ctl() { "$TOWERSCOPE" ctl --timeout 150 "$@"; }
pause() { read -rt "$1" <> <(:) || :; } # seconds
field() { sed -E "s/.*\"$1\":\"?([^,\"}]*).*/\1/"; }
step() { ctl "$1" status --json | field step; }
process() { ctl "$1" status --json | field process; }
beyond() { [ "$(step "$1")" -gt "$2" ]; }
state_is() { "$TOWERSCOPE" ls | grep -qE "^$1 +$2 "; }

# ---- a start: the name is printed, the engine has a session of its own and writes a log
[ "$(run one)" = one ] || fail "run --detach prints the name"
pid=$(process one)
[ "$(ps -o sid= -p "$pid" | tr -d ' ')" = "$pid" ] || fail "the engine leads a session"
[ "$(readlink /proc/$pid/fd/0)" = /dev/null ] || fail "stdin"
[ "$(readlink /proc/$pid/fd/1)" = "$TEST_TMP/runs/one/engine.log" ] || fail "stdout"
grep -q '^model ' runs/one/engine.log || fail "engine.log: $(cat runs/one/engine.log)"
[ "$(cat runs/one/lock)" = "$pid" ] || fail "the lock tells the process"
name=$(run --steps 3) && [ -d "runs/$name" ] || fail "a name is made up: $name"
await state_is "$name" ended

# ---- what it refuses leaves nothing behind, and says why at once
for bad in "--towers 0" "--data nowhere" "--model nowhere" "../escape" "--config none.ini" "--script /dev/stdin" "-x"; do
    ls runs >before
    run $bad >out 2>err && fail "run $bad: exit 0"
    [ -s err ] || fail "run $bad says nothing"
    ls runs | cmp -s before - || fail "run $bad left $(ls runs)"
done
run one >out 2>err
[ $? = 3 ] && grep -q "process $pid " err || fail "a second run of the name: $(cat err)"
run one --resume >out 2>err
[ $? = 3 ] && grep -q "process $pid " err || fail "resume of a run that is live: $(cat err)"
"$TOWERSCOPE" run two --data generated </dev/null >out 2>err && fail "a console without a terminal"
grep -q 'towerscope train' err && [ ! -e runs/two ] || fail "no terminal: $(cat err)"

# ---- kill -9 of a console: training goes on, and the next console has control
if command -v script >/dev/null; then
    mkfifo keys # that nobody types on
    TERM=xterm script -qc "exec '$TOWERSCOPE' attach one" screen >/dev/null 2>&1 <>keys &
    console_is_there() { console=$(pgrep -f "^$TOWERSCOPE attach one") && [ -s screen ]; }
    await console_is_there
    at=$(step one)
    kill -9 $console
    await beyond one $((at + 5))
    kill %% 2>/dev/null
fi

# ---- commands: acknowledged, at the next step, from any folder
cd /
ctl one towers 4 >"$TEST_TMP/out" || fail "towers 4"
grep -qE '^applied after step [0-9]+: the batch of 128' "$TEST_TMP/out" || fail "its answer: $(cat "$TEST_TMP/out")"
ctl one pause >/dev/null || fail "pause"
at=$(step one)
[ "$(ctl one status --json | field state)" = paused ] || fail "paused"
ctl one step 3 >/dev/null || fail "step 3"
await beyond one $((at + 2))
pause 0.3
[ "$(step one)" = $((at + 3)) ] || fail "three steps, not $(($(step one) - at))"
ctl one set lr 0.05 >"$TEST_TMP/out" && grep -q '0.05' "$TEST_TMP/out" || fail "set lr"
for bad in "towers 0" "towers x" "set lr -1" "set lr nan" "towers 9999" "puase" "step 0"; do
    ctl one $bad >"$TEST_TMP/out" 2>"$TEST_TMP/err"
    [ $? = 3 ] && [ -s "$TEST_TMP/err" ] || fail "ctl $bad: $(cat "$TEST_TMP/out" "$TEST_TMP/err")"
done
ctl one set batch 7 >/dev/null 2>&1
[ "$(ctl one status --json | field towers)" = 4 ] || fail "refused commands change nothing"
ctl one set batch 128 >/dev/null || fail "set batch"
ctl one note --at $((at + 500)) 'hello  there' >"$TEST_TMP/out" 2>"$TEST_TMP/err" &
later=$!
await grep -q "waits for step $((at + 500))" "$TEST_TMP/err"
ctl one resume >/dev/null || fail "resume"
wait $later || fail "a command for later: $(cat "$TEST_TMP/err")"
grep -q "^applied after step $((at + 500))" "$TEST_TMP/out" || fail "at its step: $(cat "$TEST_TMP/out")"
ctl one note late --at=1 2>"$TEST_TMP/err"
[ $? = 3 ] && grep -q 'has passed' "$TEST_TMP/err" || fail "a step that has passed: $(cat "$TEST_TMP/err")"
ctl one note never --at 999999999 --timeout=0.3 2>"$TEST_TMP/err"
[ $? = 1 ] && grep -q '0.3 s' "$TEST_TMP/err" || fail "a timeout: $(cat "$TEST_TMP/err")"
ctl nowhere pause 2>/dev/null
[ $? = 4 ] || fail "no such run"
ctl "$TEST_TMP/runs/one" status >/dev/null || fail "by its path"
ctl one >/dev/null 2>&1
[ $? = 2 ] || fail "no command"
state_is one training || fail "ls from another folder: $("$TOWERSCOPE" ls)"
cd "$TEST_TMP"

# ---- kill -9 of the engine: ls says crashed, attach says what to do, from any folder; resume goes on
await beyond one $((at + 20))
ctl one save >/dev/null || fail "save"
saved=$(ls runs/one/checkpoints | tail -n 1 | tr -dc 0-9 | sed 's/^0*//')
pid=$(process one)
kill -9 "$pid"
await state_is one crashed
cd /
"$TOWERSCOPE" ls 2>/dev/null | grep -q '^one ' && fail "a crashed run is listed in other folders"
"$TOWERSCOPE" attach one 2>"$TEST_TMP/err" </dev/null
[ $? = 4 ] && grep -q 'replay' "$TEST_TMP/err" || fail "attach to a crashed run: $(cat "$TEST_TMP/err")"
ctl one pause 2>"$TEST_TMP/err"
[ $? = 4 ] && grep -q 'is not live (crashed after step [0-9]*\(, saved up to step [0-9]*\)*)' "$TEST_TMP/err" && grep -q -- --resume "$TEST_TMP/err" ||
    fail "ctl to a crashed run: $(cat "$TEST_TMP/err")"
cd "$TEST_TMP"
[ "$(run one --resume 2>err)" = one ] || fail "resume after a crash"
grep -q "^towerscope: one goes on after step $saved," err || fail "a resume says from where: $(cat err)"
await beyond one "$saved"
state_is one training || fail "it trains again"
grep -q "\"resumed_from\":$saved[,}]" runs/one/events.jsonl ||
    fail "it says from where: $saved, $(ls runs/one/checkpoints), $(grep -o '"resumed_from":[0-9]*' runs/one/events.jsonl)"

# ---- a stopped engine is not taken for dead
pid=$(process one)
kill -STOP "$pid"
run one --resume >out 2>err && fail "a second engine beside a stopped one"
state_is one training || fail "ls of a stopped engine"
ctl one status --timeout 3 2>err
[ $? = 1 ] && grep -q 'did not answer' err || fail "ctl to a stopped engine: $(cat err)"
kill -CONT "$pid"
ctl one status >/dev/null || fail "it goes on"

# ---- SIGTERM: saved, said, gone; also while it is paused
ctl one pause >/dev/null
kill -TERM "$pid"
await state_is one ended
tail -n 1 runs/one/events.jsonl | grep -q '"event":"run_end".*"reason":"stopped".*signal 15' || fail "run_end"
await gone "$pid"
[ -z "$(ls "$XDG_STATE_HOME/towerscope/live")" ] || fail "left behind: $(ls "$XDG_STATE_HOME/towerscope/live")"

# ---- every event has its number, without a hole, across crash and resume; JSON that strict readers take
awk -F'"seq":' '{split($2, a, ","); if (a[1] != NR) {print "line " NR " has seq " a[1]; exit 1}}' runs/one/events.jsonl || fail "seq"
grep -nE '[:,[] *-?(nan|inf|NaN|Infinity)' runs/one/events.jsonl && fail "no JSON"
[ "$(grep -c '"status":"pending"' runs/one/events.jsonl)" = 0 ] || fail "pending is live only"

# ---- nothing to attach to: training goes on all the same
XDG_STATE_HOME=/dev/null "$TOWERSCOPE" train alone --data generated --model softmax --steps 5 --eval-every 0 >out 2>err || fail "train without a state folder: $(cat err)"
grep -q 'no console can attach' err || fail "it says so: $(cat err)"
grep -hE -A5 'Sanitizer|runtime error' runs/*/engine.log && fail "a sanitizer spoke in an engine's log"
finish
