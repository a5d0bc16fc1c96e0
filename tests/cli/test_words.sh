#!/usr/bin/env bash
# What the commands answer to a wrong line, a full disk behind standard output, and a script that goes amiss.
. "$SOURCE/tests/support/test.sh"
softmax=(--data generated --model softmax --lr 0.01 --eval-every 0)

# ---- the nearest word when one is near, and none when none is
expect 2 'the nearest is train; ' trian
expect 2 'no command "frobnicate"; towerscope --help' frobnicate
expect 2 'the nearest is --momentum' train --momentun 1
expect 2 'there is no option --frobnicate' train --frobnicate 3
grep -q nearest err && fail "far-fetched: $(cat err)"
expect 2 'there is no setting "zzz"' train --set zzz=3
grep -q nearest err && fail "far-fetched: $(cat err)"
expect 2 'there is no option --towerz; the nearest is --towers' doctor --towerz 2
expect 2 'doctor takes no ""' doctor ''
expect 4 'did you mean softmax? There are cifar10' train --model sofmax
expect 4 'no model is called "qqqqq". There are cifar10' train --model qqqqq
grep -q 'did you mean' err && fail "far-fetched: $(cat err)"
expect 4 'there is no lesson "foo"; towerscope lesson' lesson foo

# ---- help of a command, and of a part of it
expect 0 'Exit code: 0 done, 1 failed, 2 a wrong line, 3 refused, 4 not found,' --help
"$TOWERSCOPE" run --help >wanted
for words in run 'data order' ls; do
    "$TOWERSCOPE" $words --help >wanted && "$TOWERSCOPE" help $words | cmp -s wanted - || fail "help $words"
done
expect 2 'no command "trian"; the nearest is train' help trian
expect 0 'is what `towerscope run` starts' engine --help
for words in '' run train attach ctl ls replay lesson eval diff data 'data check' 'data make' 'data show' 'data order' doctor bench; do
    "$TOWERSCOPE" $words --help >out || fail "$words --help"
    awk 'length($0) > 79 { exit 1 }' out || fail "$words --help is wider than 79 columns: $(cat out)"
    grep -q ' $' out && fail "$words --help: blanks at the end of a line"
done
"$TOWERSCOPE" ctl --help >out
grep -q '^  --timeout S  .* seconds to wait for the answer$' out && grep -q '^ \{43\}how far the command is$' out &&
    grep -q '^ \{43\}under a wrong rule$' out || fail "folded: $(cat out)"

# ---- options are read alike everywhere: behind a blank or a =, and none of them after --
for words in ls attach replay diff 'data show' 'data check'; do
    "$TOWERSCOPE" $words -h | grep -q '^usage:' || fail "$words -h"
    expect 2 'has no option "--frobnicate"' $words --frobnicate
done
for words in ls attach replay diff; do expect 2 '--runs wants a folder after it' $words --runs; done
expect 0 'no runs of "nowhere"' ls --runs=nowhere
expect 2 '--json takes no value, found "yes"' ls --json=yes
expect 2 'ls takes no names, and "one" is one too many' ls one
expect 2 'diff takes two runs, and "three" is one too many' diff one two three
expect 4 'no run or file "--at"' replay --runs=nowhere -- --at

# ---- empty words
expect 2 '--config is empty' train --config ''
expect 2 '--script is empty' train --script ''
expect 2 'the name is empty' train ''
expect 4 'the name of the run is empty' diff '' ''
expect 4 'the name of the run is empty' replay ''
printf '[]\nlr = 1\n' >nameless.ini
expect 2 'nameless.ini:1: the section [] has no name' train --config nameless.ini

# ---- an instruction set that is none, and one that this processor lacks
expect 2 'avx512|avx2|plain' train --isa foo
for isa in avx512 avx2; do
    "$TOWERSCOPE" train "${softmax[@]}" --isa $isa --steps 1 >out 2>err || grep -q "^towerscope: device cpu .*$isa" err ||
        fail "--isa $isa: $(cat err)"
done

# ---- towers without images
expect 0 'idle    5 towers: a step has 3 images' train "${softmax[@]}" --batch 3 --towers 8 --steps 1
expect 0 'shared by 3 towers' train "${softmax[@]}" --batch 3 --towers 3 --steps 1
grep -q '^idle' out && fail "no tower is idle: $(cat out)"

# ---- standard output takes no more
train() { "$TOWERSCOPE" train "${softmax[@]}" "$@"; }
train full --steps 2 >out 2>err || fail "train: $(cat err)"
full() {
    "$TOWERSCOPE" "$@" >/dev/full 2>err
    local rc=$?
    [ $rc = 1 ] || fail "$* to a full disk: exit $rc"
    [ "$(grep -c 'not all could be written to standard output: No space left' err)" = 1 ] || fail "$*: $(cat err)"
    "$TOWERSCOPE" "$@" >&- 2>err
    rc=$?
    [ $rc = 1 ] && [ "$(grep -c 'not all could be written to standard output: it is closed' err)" = 1 ] ||
        fail "$*, closed: exit $rc: $(cat err)"
    exec 3> >(true)
    wait $!
    "$TOWERSCOPE" "$@" >&3 2>err
    rc=$?
    exec 3>&-
    [ $rc = 141 ] && [ ! -s err ] || fail "$*, a reader that left: exit $rc: $(cat err)"
}
full --help
full --version
full ls
for i in {1..30}; do cp -r runs/full "runs/also$i"; done # the list is longer than what is gathered before it is written
full ls --json
rm -r runs/also*
full protocol
full doctor
"$TOWERSCOPE" data make small --images 50 >out || fail "data make: $(cat out)"
full data check small
full data order small
full lesson
full eval full
full diff full full
full data show small
full train --help
# a run itself is whole
train unheard --steps 2 --log-every 1 2>err >/dev/full
[ $? = 1 ] && grep -q 'standard output: No space left' err || fail "train to a full disk: $(cat err)"
train unseen --steps 2 --log-every 1 2>err >&-
[ $? = 1 ] && grep -q 'standard output: it is closed' err || fail "train, closed: $(cat err)"
for name in unheard unseen; do
    tail -n 1 runs/$name/events.jsonl | grep -q '"reason":"done"' || fail "$name is not done"
done
# a reader that left: the run goes on and is whole
train left --steps 40 --log-every 1 2>err | head -n 1 >out
[ "${PIPESTATUS[0]}" = 0 ] && [ ! -s err ] || fail "a reader that left: $(cat err)"
tail -n 1 runs/left/events.jsonl | grep -q '"reason":"done"' || fail "a reader that left ends the run"

# ---- scripts: through a pipe; refused at run time; never reached
train piped --steps 4 --script <(sleep 0.2; echo '@1 towers 3'; echo '@3 note late') >out 2>err || fail "a pipe: $(cat err)"
grep -q '"event":"towers".*"to":3' runs/piped/events.jsonl && grep -q '"text":"late"' runs/piped/events.jsonl ||
    fail "a script through a pipe: $(cat out)"
expect 1 'zero byte' train "${softmax[@]}" --steps 4 --script <(printf '@1\0')
expect 1 'not a file' train "${softmax[@]}" --steps 4 --script .
printf '@1 restore\n@2 note here\n' >session
train amiss --steps 4 --script session >out 2>err
rc=$?
[ $rc = 3 ] || fail "refused at run time: exit $rc: $(cat out err)"
grep -q 'restore' err || fail "not told which: $(cat out err)"
grep -q '"text":"here"' runs/amiss/events.jsonl && tail -n 1 runs/amiss/events.jsonl | grep -q '"reason":"done"' ||
    fail "a refused command ends the script: $(cat out err)"
printf '@2 note here\n@900 note never\n' >session
expect 3 'the run ends after step 4' train unreached "${softmax[@]}" --steps 4 --script session
grep -q '"text":"note never","status":"refused"' runs/unreached/events.jsonl || fail "not recorded: $(grep command runs/unreached/events.jsonl)"
expect 3 'session: refused, as the run ended after step 4: @900 note never' train unreached --resume --script session
printf '@4 note here\n' >session # all of it was given when the run was trained
expect 0 'is done' train unreached --resume --script session
mkfifo pipe
train waiting --steps 4 --script pipe >out 2>err &
await -p $! grep -q 'waits for the commands of pipe' err
echo '@3 note late' >pipe
wait $! && grep -q 'note: late' out || fail "a pipe that is late: $(cat out err)"

# ---- a run without a checkpoint
printf '@2 stop --discard\n' >session
train mute --steps 9 --script session >out 2>err || fail "stop --discard: $(cat err)"
expect 4 'run mute has no checkpoint, and is not live' eval mute
expect 4 'run mute has no checkpoint, and is not live' eval runs/mute//
expect 0 'softmax after 2 steps' eval runs/unseen
expect 0 'softmax after 2 steps' eval "$PWD/runs/unseen/"
mkdir other && echo hello >other/papers
expect 4 'other holds other files' eval ./other
expect 4 'run mute is not live (ended after step 2, none of it saved)' ctl mute pause

# ---- ls tells the towers that the last command left
printf '@3 towers 5\n@3 stop\n' >session
train stopped --steps 9 --script session >out 2>err || fail "stop: $(cat err)"
expect 0 'ended' ls
grep -qE '^stopped +ended +3 +5 ' out || fail "towers after a stop: $(cat out)"
finish
