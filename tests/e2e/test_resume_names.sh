#!/usr/bin/env bash
# What changed behind a run's back is named when it goes on: its model file, its images, the folder it is resumed from, its
# checkpoints, a wrong rule in force.
# test-timeout: 240
. "$SOURCE/tests/trials/fixtures.sh"
train() { "$TOWERSCOPE" train "$@" --eval-every 0 --log-every 1000000 >out 2>err </dev/null; }
resume() { "$TOWERSCOPE" train "$1" --resume "${@:2}" --log-every 1000000 >out 2>err </dev/null; }
steps() { grep -c '"event":"step"' "runs/$1/events.jsonl"; }
quiet() { [ ! -s err ] && grep -q 'no setting changed' out || fail "$1: $(cat err; grep resume out)"; }

make_idx set 200
cat >net.ini <<'INI'
[model]
name = mine
input = 24
[out]
type = dense
units = classes
deviation = 0.01
INI

# ---- from another folder: paths are kept whole
train r --data set --model net.ini --lr 0.01 --batch 16 --steps 3 || fail "r: $(cat err)"
grep -qx "data = $PWD/set" runs/r/config.ini && grep -qx "model = $PWD/net.ini" runs/r/config.ini ||
    fail "config.ini keeps paths that hold only here: $(grep -E 'data|model' runs/r/config.ini)"
mkdir below
(cd below && resume r --runs ../runs --steps 4) || fail "from another folder: $(cat below/err)"
[ ! -s below/err ] && grep -q 'changed: steps from 3 to 4;' below/out || fail "from another folder: $(cat below/err; grep resume below/out)"
"$TOWERSCOPE" train again --config runs/r/config.ini >out 2>&1 || fail "config.ini after a resume: $(cat out)"
grep -qx 'steps = 4' runs/r/config.ini || fail "config.ini does not follow a resume: $(cat runs/r/config.ini)"
[ "$(steps again)" = 4 ] || fail "config.ini after a resume: $(steps again) steps"
resume r --data set --model ./net.ini --steps 5 || fail "the same by other words: $(cat err)"
[ ! -s err ] && grep -q 'changed: steps from 4 to 5;' out || fail "the same by other words: $(cat err; grep resume out)"

# ---- a path that is too long once it is whole: said, not kept as it holds only here
long=$(printf 'folder-%.0s' {1..30})
mkdir -p "$long/$long/$long/$long/$long"
cp -r set "$long/$long/$long/$long/$long/"
(
    cd "$long/$long/$long/$long/$long" && train far --data set --model softmax --steps 1
    [ $? = 1 ] && grep -q '^towerscope: data: set, written out from /, is a path of 1[0-9]* bytes, and a run keeps at most 1023' err &&
        [ ! -e runs ] || fail "a long path: $(cat out err; ls -d runs 2>&1)"
)

# ---- a folder that is no run's
mkdir runs/papers && echo precious >runs/papers/thesis.txt
resume papers --data set --model net.ini --steps 1
[ $? = 4 ] && grep -q 'runs/papers holds other files' err || fail "a folder of other files: $(cat err)"
[ "$(ls -A runs/papers)" = thesis.txt ] || fail "something was put beside other files: $(ls -A runs/papers)"
mkdir runs/begun
resume begun --data set --model net.ini --steps 1 || fail "killed as it began: $(cat err)"

# ---- the model file
cp net.ini kept.ini
sed -i 's/0.01/0.02/' net.ini
resume r --steps 6 || fail "a changed model file: $(cat err)"
grep -q "$PWD/net.ini was changed: the run goes on with the model it was saved with" err || fail "a changed model file: $(cat err)"
resume r --steps 7 --model net.ini
[ $? = 3 ] && grep -q "of the model mine and can't go on with net.ini" err || fail "another model, asked for: $(cat err)"
mv net.ini gone.ini
resume r --steps 7 || fail "a model file that is gone: $(cat err)"
grep -q "$PWD/net.ini can't be read any more: the run goes on" err || fail "a model file that is gone: $(cat err)"
cp kept.ini net.ini
resume r --steps 8 || fail "the model file again: $(cat err)"
[ ! -s err ] || fail "the model file again: $(cat err)"

# ---- as many images, but others
poke set/train-images-idx3-ubyte 1000 '\x7b'
resume r --steps 9 || fail "another pixel: $(cat err)"
grep -q 'the training images or labels of set are not those the run was trained with$' err || fail "another pixel: $(cat err)"
resume r --steps 10 || fail "the new images again: $(cat err)"
[ ! -s err ] || fail "they are the run's now: $(cat err)"
poke set/t10k-labels-idx1-ubyte 8 '\x09'
resume r --steps 11 || fail "another test label: $(cat err)"
grep -q 'the test images or labels of set are not those of before' err || fail "another test label: $(cat err)"
grep -q 'training images or labels' err && fail "the training images did not change: $(cat err)"
grep -q '"event":"alarm".*"level":"warning".*test images or labels' runs/r/events.jsonl || fail "a change is not in the record"

# ---- checkpoints that are gone
mv runs/r/checkpoints away
find runs/r -type f ! -name lock ! -name owner -printf '%p %T@ %s\n' | sort >before
resume r --steps 12
[ $? = 3 ] && grep -q "its record says that step 11 was saved, and there is no checkpoint in runs/r/checkpoints: put them back" err ||
    fail "checkpoints moved away: $(cat err)"
find runs/r -type f ! -name lock ! -name owner -printf '%p %T@ %s\n' | sort >after
cmp -s before after || fail "what was refused changed something"
mkdir runs/r/checkpoints
resume r --steps 12
[ $? = 3 ] && grep -q "its record says that step 11 was saved" err || fail "an empty folder of checkpoints: $(cat err)"
cp away/step-00000009.safetensors runs/r/checkpoints
resume r --steps 12 || fail "from an earlier one: $(cat err)"
grep -q 'its record says that step 11 was saved last, and the newest checkpoint is of step 9' err || fail "from an earlier one: $(cat err)"
resume r --steps 13 --begin-again
[ $? = 3 ] && grep -q 'has checkpoints' err || fail "--begin-again with checkpoints: $(cat err)"
rm runs/r/checkpoints/*
resume r --steps 2 --begin-again || fail "--begin-again: $(cat err)"
grep -q "begins again at step 0: its record says that step 12 was saved, and the checkpoints are gone" out || fail "--begin-again: $(grep resume out)"
[ -e runs/r/checkpoints/step-00000002.safetensors ] || fail "--begin-again saved nothing"
# one that never had one is no trouble
"$TOWERSCOPE" train short --data set --model softmax --batch 16 --steps 100000000 \
    --checkpoint-every 0 --eval-every 0 >out 2>err </dev/null &
pid=$!
await -p $pid grep -qs '"event":"step"' runs/short/events.jsonl
kill -9 $pid
wait $pid 2>/dev/null
resume short --steps 2 || fail "killed before its first checkpoint: $(cat err)"
grep -q 'begins again at step 0: it ended before its first checkpoint' out || fail "killed before its first checkpoint: $(grep resume out)"

# ---- a wrong rule in force
printf '@4 why apply sum\n' >sum.script
train whole --data set --model softmax --towers 3 --batch 16 --steps 12 --script sum.script || fail "whole: $(cat err)"
printf '@4 why apply sum\n@8 stop\n' >stop.script
train parts --data set --model softmax --towers 3 --batch 16 --steps 12 --script stop.script || fail "parts: $(cat err)"
resume parts || fail "parts, resumed: $(cat err)"
grep -q 'the wrong rule sum is in force, as it was at the checkpoint, until why restore$' err || fail "a wrong rule: $(cat err)"
cmp runs/whole/checkpoints/step-00000012.safetensors runs/parts/checkpoints/step-00000012.safetensors ||
    fail "under a wrong rule a stop shows in the checkpoint"
tail -n 30 runs/parts/events.jsonl | grep '"step":12,' | grep -q '"applied":"sum"' || fail "the last step does not name the rule"
printf '@4 why apply no-average\n@8 stop\n' >stop.script
train apart --data set --model softmax --towers 3 --batch 16 --steps 12 --script stop.script || fail "apart: $(cat err)"
resume apart || fail "apart, resumed: $(cat err)"
grep -q 'no-average is in force.*; the towers set out again from their mean' err || fail "no-average: $(cat err)"
finish
