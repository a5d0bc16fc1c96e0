#!/usr/bin/env bash
# `towerscope train` as a person runs it: what it prints, keeps, refuses and how it ends.
. "$SOURCE/tests/support/test.sh"
softmax=(--data generated --model softmax --lr 0.01 --eval-every 0)
train() { "$TOWERSCOPE" train "${softmax[@]}" "$@"; }
# `train` with these arguments is refused, and nothing is made.
refuse() { # CODE WORDS ARGUMENT...
    rm -rf none
    expect "$1" "$2" train "${softmax[@]}" "${@:3}" --runs none
    [ ! -s out ] || fail "train ${*:3}: prints $(cat out)"
    [ ! -e none ] || fail "train ${*:3}: left $(find none)"
}

# ---- a run: lines, record, config, lock
train first --steps 20 --seed 3 >out 2>err || fail "train: exit $?: $(cat err)"
[ ! -s err ] || fail "stderr: $(cat err)"
[ "$(grep -cE '^[0-9-]{10} [0-9:]{8}: step (10|20), loss = [0-9.]+ \([0-9.]+ examples/sec; [0-9.]+ sec/batch\)$' out)" = 2 ] ||
    fail "the two lines: $(cat out)"
grep -q $'\x1b' out && fail "escape sequences in a file"
for word in model data device batch memory; do grep -q "^$word " out || fail "no $word line"; done
[ "$(grep -c '"event":"step"' runs/first/events.jsonl)" = 20 ] || fail "20 steps are recorded"
head -n 1 runs/first/events.jsonl | grep -q '"event":"run_start","seq":1,' || fail "run_start comes first"
tail -n 1 runs/first/events.jsonl | grep -q '"event":"run_end".*"reason":"done"' || fail "run_end comes last"
grep -q '^seed = 3$' runs/first/config.ini || fail "config.ini: $(cat runs/first/config.ini)"
[ -e runs/first/lock ] || fail "no lock file"

# ---- the same again from its config: the same record
train second --config runs/first/config.ini >out 2>err || fail "from config.ini: $(cat err)"
"$TOWERSCOPE" diff first second >out 2>&1 || fail "the same settings, other numbers: $(cat out)"
train third --config runs/first/config.ini --seed 4 >out 2>err || fail "another seed: $(cat err)"
"$TOWERSCOPE" diff first third >out 2>&1 && fail 'another seed, the same numbers'
losses() { grep -o '"event":"step".*' "$1" | sed -E 's/.*"cross_entropy":([^,]*),"weight_decay":([^,]*),"loss":([^,]*),"grad_norm":([^,]*),.*"towers".*/\1 \3 \4/'; }
[ "$(losses runs/first/events.jsonl | sort -u | wc -l)" = 20 ] || fail "20 different steps"

# ---- the folder of runs: flag before environment before file, and what gives way is said
printf 'runs = of-file\nsteps = 2\n' >runs.ini
TOWERSCOPE_RUNS=of-environment train where --config runs.ini >out 2>err || fail "two folders of runs: $(cat err)"
[ -e of-environment/where/lock ] && [ ! -e of-file ] || fail "TOWERSCOPE_RUNS does not go before the config file"
grep -q 'TOWERSCOPE_RUNS is of-environment: it goes before runs = of-file' err || fail "two folders of runs: $(cat err)"
TOWERSCOPE_RUNS=of-environment train where --config runs.ini --runs of-flag >out 2>err || fail "of-flag: $(cat err)"
[ -e of-flag/where/lock ] && [ ! -s err ] || fail "--runs: $(cat err)"

# ---- refused before anything is made
refuse 2 'nearest is --batch' --bathc 64
refuse 2 'at least 1' --towers 0
refuse 2 'whole number' --towers x
refuse 2 'at least 0' --lr -1
train --runs none --lr >out 2>err
[ $? = 2 ] && grep -q 'needs a value: --lr X' err || fail "an option without its value: $(cat err)"
refuse 2 'batch-per-tower' --batch 8 --batch-per-tower 4
refuse 2 'epochs' --steps 8 --epochs 4
refuse 2 'nearest is "momentum"' --set momentun=0.9
refuse 2 'KEY=VALUE' --set momentum
refuse 2 'two run names' one two
refuse 2 'name' ../escape
refuse 1 'flips' --distort flips
refuse 4 'nowhere' --data nowhere
refuse 1 'gpu:0' --devices gpu:0
refuse 1 'precision' --precision bf16
printf '@5 towers 3\n\n# a comment\n@7 towersq 2\n' >bad.script
refuse 1 'bad.script:4: ' --script bad.script
printf '5 towers 3\n' >bad.script
refuse 1 'bad.script:1: ' --script bad.script
refuse 4 'none.script' --script none.script
printf '@3 towers 4\r@6 towers 1\r' >bad.script
refuse 1 'bad.script:1: a carriage return within' --script bad.script
printf '# a comment\r@6 towers 1\r\n' >bad.script
refuse 1 'bad.script:1: a carriage return within' --script bad.script
train first >out 2>err
[ $? = 3 ] && grep -q 'exists already: --resume goes on' err || fail "a name that exists: $(cat err)"
grep -q '"reason":"done"' runs/first/events.jsonl || fail "the first run was touched"

# ---- precedence: file < environment < flag
printf 'steps = 5\nruns = from-file\nlr = 0.125\nbatch = 32\n' >low.ini
TOWERSCOPE_RUNS=from-environment train a --config low.ini --lr 0.25 --batch-per-tower 8 >out 2>err || fail "$(cat err)"
grep -q '^lr = 0.25$' from-environment/a/config.ini || fail "flags win"
grep -q '^steps = 5$' from-environment/a/config.ini || fail "the file counts"
grep -q '^batch =' from-environment/a/config.ini && fail "batch-per-tower takes the place of batch"
TOWERSCOPE_RUNS=from-environment train a --config low.ini --runs from-flag >out 2>err || fail "$(cat err)"
[ -d from-flag/a ] || fail "--runs wins"

# ---- a script: commands at their step, answered in the record
printf '@3 towers 5\n@0 note begun\n@6 set lr 0.5\n@6 set lr -1\n@8 pause\n@8 step 2\n@10 resume\n' >session
sed -i '/-1/d' session
train scripted --steps 14 --script session >out 2>err || fail "script: $(cat err)"
record=runs/scripted/events.jsonl
grep -q '"event":"towers".*"step":3,"from":2,"to":5' $record || fail "towers at 3"
[ "$(grep -c '"status":"applied"' $record)" = 6 ] || fail "six commands: $(grep '"event":"command"' $record)"
[ "$(grep -c '"event":"step"' $record)" = 14 ] || fail "14 steps"
grep '"event":"step"' $record | sed -n 7p | grep -q '"lr":0.5,' || fail "lr from step 7"
grep '"event":"step"' $record | sed -n 6p | grep -q '"lr":0.01,' || fail "lr up to step 6"
printf '\xef\xbb\xbf@4 why apply sum\r\n@8 why restore --rewind\r\n@8 resume\r\n@9 towers 3\r\n' >session
train rewound --steps 14 --script session >out 2>err || fail "a script that goes back and on: $(cat out err)"
tail -n 1 runs/rewound/events.jsonl | grep -q '"step":14,"reason":"done"' || fail "it goes on after it went back"
grep -q '"event":"towers".*"step":9,"from":2,"to":3' runs/rewound/events.jsonl || fail "and so does the script"
printf '@4 phase next\n@4 phase run\n@5 resume\n' >session
train walked --steps 14 --script session >out 2>err || fail "a script that walks a step: $(cat out err)"
tail -n 1 runs/walked/events.jsonl | grep -q '"step":14,"reason":"done"' || fail "it goes on after the step"
printf '@4 pause\n' >session
train paused --steps 14 --script session >out 2>err || fail "a pause for ever: $(cat err)"
tail -n 1 runs/paused/events.jsonl | grep -q '"step":4,"reason":"stopped"' || fail "a run that nobody resumes ends"
printf '@4 stop\n' >session
train stopped --steps 14 --script session >out 2>err || fail "stop: $(cat err)"
tail -n 1 runs/stopped/events.jsonl | grep -q '"step":4,"reason":"stopped"' || fail "stop ends the run"

# ---- signals: the step is finished, the record is closed, exit 130
for signal in INT TERM USR2; do
    (trap - INT; exec "$TOWERSCOPE" train on-$signal --data generated --model softmax --log-every 1) >out-$signal 2>&1 &
    pid=$!
    await -p $pid grep -q 'step 3,' out-$signal
    kill -$signal $pid
    wait $pid
    rc=$?
    # a background job of a shell ignores SIGINT from its start on, as nohup does; then it goes on
    [ $rc = 130 ] || fail "$signal: exit $rc: $(tail -n 3 out-$signal)"
    tail -n 1 runs/on-$signal/events.jsonl | grep -q '"event":"run_end".*"reason":"stopped"' || fail "$signal: no run_end"
done

# ---- a value that is not finite: back, told, failed; the record stays JSON
"$TOWERSCOPE" train blown --data generated --model mlp --lr 1e20 --steps 20 >out 2>err
[ $? = 1 ] || fail "lr 1e20: $(tail -n 2 out err)"
grep -q 'not finite' err || fail "lr 1e20 says nothing: $(cat err)"
for event in alarm rewind; do grep -q "\"event\":\"$event\"" runs/blown/events.jsonl || fail "lr 1e20: no $event"; done
grep -niE '[:,[] *-?(nan|inf)' runs/blown/events.jsonl && fail 'no JSON'
tail -n 1 runs/blown/events.jsonl | grep -q '"reason":"failed"' || fail 'lr 1e20: run_end'

# ---- hundreds of towers still fit the wire's longest line
cat >tiny.ini <<'END'
[model]
name = tiny
input = 4
[one]
type = dense
units = 4
deviation = 0.1
bias = 0
weight_decay = 0.01
[out]
type = dense
units = classes
deviation = 0.1
bias = 0
weight_decay = 0.01
END
for towers in 200 256 700 1024; do
    train many-$towers --model tiny.ini --towers $towers --batch 1100 --steps 3 >out 2>err || fail "$towers towers: $(cat err)"
    [ ! -s err ] || fail "$towers towers: $(cat err)"
    [ "$(grep '"event":"step"' runs/many-$towers/events.jsonl | grep -o '"tower":' | wc -l)" = $((3 * towers)) ] ||
        fail "$towers towers in three steps"
    [ "$(awk '{ if (length > m) m = length } END { print m < 65536 }' runs/many-$towers/events.jsonl)" = 1 ] || fail 'a long line'
done

# ---- a disk that takes no more: said once, the training goes on, the exit code tells
(ulimit -f 8; TOWERSCOPE_SAVE_SECONDS=0 train full --steps 60 --record-every 1 >out 2>err)
rc=$?
[ $rc = 1 ] || fail "a full disk: exit $rc"
[ "$(grep -c 'events.jsonl' err)" -ge 1 ] && [ "$(grep -c . err)" -le 5 ] || fail "a full disk: $(cat err)"
grep -q 'step 60, ' out || fail "a full disk ends no training: $(cat out)"

# ---- closed descriptors: nothing printed lands in the run's files
train closed --steps 12 <&- >&- 2>&-
rc=$? # its lines could not be printed
[ $rc = 1 ] && tail -n 1 runs/closed/events.jsonl | grep -q '"reason":"done"' || fail "closed descriptors: exit $rc"
[ "$(grep -vc '^{"event".*}$' runs/closed/events.jsonl)" = 0 ] || fail 'strange lines in the record'
grep -vqE '^[a-z-]+ = ' runs/closed/config.ini && fail 'strange lines in config.ini'

# ---- on a terminal: one line, written over again
if command -v script >/dev/null; then
    TERM=xterm script -qec "'$TOWERSCOPE' train on-terminal --data generated --model softmax --steps 30 --eval-every 0" \
        /dev/null </dev/null >out 2>&1 || fail "on a terminal: $(cat out)"
    grep -q $'\r''step 30 of 30, loss = ' out || fail "no progress: $(cat -v out)"
    grep -q $'\x1b' out && fail 'escape sequences'
fi

# ---- a path with control characters moves no cursor
train there --runs $'odd\e[31m\nruns' --steps 2 >out 2>&1 && [ -s $'odd\e[31m\nruns/there/events.jsonl' ] || fail "an odd path: $(cat -v out)"
grep -q $'\x1b' out && fail "an odd path as it is: $(cat -v out)"

# ---- made-up names are made exclusively
for i in 1 2 3 4 5 6 7 8; do train --runs many --steps 2 >/dev/null 2>&1 & done
wait
[ "$(ls many | wc -l)" = 8 ] || fail "eight runs, $(ls many | wc -l) folders"
[ "$(cat many/*/events.jsonl | grep -c '"reason":"done"')" = 8 ] || fail "eight runs end well"

finish
