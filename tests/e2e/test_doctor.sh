#!/usr/bin/env bash
# `towerscope doctor`: what it lists, how it plans a model, what it refuses.
. "$SOURCE/tests/support/test.sh"
"$TOWERSCOPE" doctor >out 2>err </dev/null || fail "exit $?: $(cat err)"
[ ! -s err ] || fail "stderr: $(cat err)"
for section in machine devices libraries terminal 'data sets'; do grep -qx "$section" out || fail "no $section: $(cat out)"; done
for device in cpu ref ref64; do grep -q "^  $device " out || fail "no device $device"; done
for library in libdnnl libjansson libncursesw libz libinih; do grep -q "/$library\.so\." out || fail "no $library"; done
grep -q 'generated' out || fail 'the generated set needs no files'
TERM=no-such-terminal "$TOWERSCOPE" doctor >out </dev/null || fail 'an unknown terminal is no failure'
grep -q 'TERM=no-such-terminal is not known' out || fail "terminal: $(grep TERM out)"
LC_ALL=C "$TOWERSCOPE" doctor </dev/null | grep -q 'ASCII' || fail 'frames in a plain locale'

"$TOWERSCOPE" doctor --plan cifar10 --data generated --devices ref --batch 100 --towers 3 >out 2>err || fail "plan: $(cat err)"
grep -q '1068298 parameters' out || fail 'the parameters of cifar10'
grep -q 'tower, 34 images' out || fail 'the largest shard of 100 images on 3 towers'
grep -q '^  conv2' out && grep -q '^  local3' out || fail "groups: $(cat out)"
"$TOWERSCOPE" doctor --plan=softmax --data generated >out 2>err || fail "plan on the best device: $(cat err)"
"$TOWERSCOPE" doctor --plan softmax --data generated --devices cpu --threads 8 >out 2>err || fail "8 threads: $(cat err)"
grep -q '^  evaluation, 100 images: ' out || fail "20 batches on 8 threads: $(grep evaluation out)"
"$TOWERSCOPE" doctor --plan softmax --data generated --devices cpu --threads 40 >out 2>err || fail "40 threads: $(cat err)"
grep -q '^  evaluation, 100 images in 2 lanes: ' out || fail "20 batches on 40 threads: $(grep evaluation out)"
awk '/^```/ { inside = 0 } /^\[model\]/ { inside = 1 } inside' "$SOURCE/README.md" >mine.ini
"$TOWERSCOPE" doctor --plan mine.ini --data generated >out 2>err && grep -q '^mine on .*, images of generated' out ||
    fail "the model file of the README: $(cat err)"
[ ! -e runs ] || fail 'a plan makes no folder'
"$TOWERSCOPE" doctor --plan nothing --data generated >out 2>err
[ $? = 4 ] && grep -q 'nothing' err || fail "an unknown model: $(cat err)"
"$TOWERSCOPE" doctor --plam cifar10 >out 2>err
[ $? = 2 ] && grep -q -- '--plan' err || fail "an unknown option: $(cat err)"
"$TOWERSCOPE" doctor --batch 12 >out 2>err
[ $? = 2 ] || fail 'options without --plan'
"$TOWERSCOPE" doctor --help | grep -q -- '--plan MODEL' || fail '--help'
finish
