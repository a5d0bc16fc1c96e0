#!/usr/bin/env bash
# A folder of checkpoints as people and programs leave it: files renamed, copied over others, linked to nothing,
# replaced by what is no file; files of other programs beside them. The newest is taken or refused by name, and nothing
# that was there is lost.
. "$SOURCE/tests/trials/fixtures.sh"
train() { "$TOWERSCOPE" train r --runs "$1" "${@:2}" </dev/null >out 2>err; }
"$TOWERSCOPE" data make some --images 100 >out 2>&1 || fail "data make: $(cat out)"
train kept --data some --model softmax --batch 32 --eval-every 0 --checkpoint-every 2 --steps 6 || fail "a run: $(cat err)"
step() { printf 'runs/r/checkpoints/step-%08d.safetensors' "$1"; }
again() {
    rm -rf runs
    cp -a kept runs
}
whole() { (cd runs/r/checkpoints && ls -A && cat -- *[!9].safetensors | cksum); }

# Not resumed: one line with the words, and the folder is as it was.
refuse() { # WHAT WORD...
    local what=$1 word before rc
    shift
    before=$(whole)
    train runs --resume --steps 8
    rc=$?
    [ $rc = 1 ] && [ "$(wc -l <err)" = 1 ] || fail "$what: exit $rc: $(cat out err)"
    for word in "$@"; do grep -qF -- "$word" err || fail "$what: \"$word\" is not in: $(cat err)"; done
    [ "$(whole)" = "$before" ] || fail "$what: the folder was changed: $(whole)"
}

again
train runs --resume --steps 8 && [ -f "$(step 8)" ] && [ -f "$(step 6)" ] || fail "control: $(cat err; ls runs/r/checkpoints)"

again
mv "$(step 4)" "$(step 10)"
refuse 'renamed to a later step' step-00000010.safetensors 'step 10' 'holds step 4' 'move it away'
rm "$(step 10)"
train runs --resume --steps 8 && grep -q 'goes on after step 6' out || fail "moved away: $(cat out err)"
again
cp "$(step 4)" "$(step 6)"
refuse 'copied over the newest' step-00000006.safetensors 'step 6' 'holds step 4'
again
ln -s nowhere "$(step 9)"
refuse 'a broken link' step-00000009.safetensors 'broken link' 'move it away'
again
mkfifo "$(step 9)"
refuse 'a pipe' step-00000009.safetensors 'not a file'
again
: >"$(step 9)"
refuse 'an empty file' step-00000009.safetensors '0 bytes'

again # as a disk leaves it that lost power: the length is right, the rest is zeros
size=$(stat -c %s "$(step 6)")
truncate -s $((size / 2)) "$(step 6)"
truncate -s "$size" "$(step 6)"
refuse 'zeros in its second half' step-00000006.safetensors 'softmax_linear/weights' 'not as it was saved' damaged 'moved away'
again
poke "$(step 6)" $((size - 100)) '\x01\x02'
refuse 'two bytes changed' step-00000006.safetensors 'not as it was saved'

# what a run keeps as long as it lasts tells a file of another run
other() { # WHAT WORD OPTION...
    rm -rf elsewhere
    train elsewhere "${@:3}" --batch 32 --eval-every 0 --checkpoint-every 0 --steps 7 || fail "$1, the other run: $(cat err)"
    again
    cp elsewhere/r/checkpoints/step-00000007.safetensors runs/r/checkpoints/
    refuse "$1" step-00000007.safetensors 'of another run' "$2" 'move it away'
}
other 'of another seed' 'its seed is 9' --data some --model softmax --seed 9
other 'of another model' 'its model is mlp' --data some --model mlp
"$TOWERSCOPE" data make more --images 120 >out 2>&1 || fail "data make: $(cat out)"
other 'of other data' '120 training images' --data more --model softmax
rm "$(step 7)"
train runs --resume --steps 8 && grep -q 'goes on after step 6' out || fail "another run's moved away: $(cat out err)"

again
cd runs/r/checkpoints || exit 1
for other in 'step-00000006 (1).safetensors' ._step-00000007.safetensors step-00000008.safetensors.part notes STEP-00000009.SAFETENSORS; do
    cp step-00000002.safetensors "$other"
done
cd ../../..
train runs --resume --steps 8 && grep -q 'goes on after step 6' out || fail "other files beside them: $(cat out err)"
for other in 'step-00000006 (1).safetensors' ._step-00000007.safetensors step-00000008.safetensors.part notes STEP-00000009.SAFETENSORS; do
    [ -s "runs/r/checkpoints/$other" ] || fail "$other is gone"
done
finish
