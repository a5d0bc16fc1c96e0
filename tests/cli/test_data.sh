#!/usr/bin/env bash
# towerscope data: order and show.
. "$SOURCE/tests/support/test.sh"

# ---- a folder of pictures
mkdir pictures && touch pictures/cat.PNG
expect 4 'pictures holds no data set that is known (it has cat.PNG); there is cat.PNG: files of pictures are not read; put their pixels into IDX files; tried' data check pictures

# ---- order: which image goes to which tower, and how it is distorted
"$TOWERSCOPE" data make set --images 1000 >/dev/null || fail 'data make failed'
order() { "$TOWERSCOPE" data order set "$@"; }
order --towers 4 --batch 64 --seed 1 >first || fail 'data order failed'
order --towers 4 --batch 64 --seed 1 >again
order --towers 4 --batch 64 --seed 2 >other
[ "$(wc -l <first)" = $((4 * 2 * 32)) ] || fail "32 images of 4 towers in 2 epochs are wanted, not $(wc -l <first) lines"
order --towers 4 --batch 64 | cmp -s first - || fail 'the order is not that of a run by default'
cmp -s first again || fail 'one seed gave two orders'
cmp -s first other && fail 'two seeds gave one order'
list() { grep "^epoch $2 tower $3 " "$1" | cut -d' ' -f6-; } # FILE EPOCH TOWER
for t in 0 1 2 3; do
    [ "$(list first 0 $t)" != "$(list first 1 $t)" ] || fail "tower $t has the same images in both epochs"
    for u in 0 1 2 3; do
        [ $t = $u ] || [ "$(list first 0 $t)" != "$(list first 0 $u)" ] || fail "towers $t and $u share their images"
    done
    [ "$(list first 0 $t | cut -d' ' -f2-5 | sort -u | wc -l)" -gt 16 ] || fail "tower $t has few crops"
done
for e in 0 1; do
    [ "$(grep -c "^epoch $e " first)" = "$(grep "^epoch $e " first | cut -d' ' -f6 | sort -u | wc -l)" ] ||
        fail "an image comes twice in epoch $e"
done
# An image is distorted alike whichever tower has it.
order --towers 1 --batch 64 --seed 1 --images 1000 --epochs 1 | cut -d' ' -f6- | sort >one
order --towers 3 --batch 64 --seed 1 --images 1000 --epochs 1 | cut -d' ' -f6- | sort >three
[ "$(wc -l <one)" = 1000 ] || fail 'an epoch does not have every image'
cmp -s one three || fail 'what happens to an image depends on the towers'
order --distort off | grep -vq 'top 4 left 4 flip 0 brightness 0.000 contrast 1.0000' && fail '--distort off distorts'
order --distort crop,turn 2>err && fail 'an unknown distortion was taken'
grep -q '"turn"' err || fail 'the unknown distortion is not named'

# ---- show
out=$("$TOWERSCOPE" data show set --class star --count 3 --width 80) || fail 'data show failed'
[ "$(grep -o '6 star' <<<"$out" | wc -l)" = 3 ] || fail 'not three stars'
[ "$(head -n 1 <<<"$out" | wc -m)" -le 81 ] || fail 'wider than asked for'
grep -q $'\x1b' <<<"$out" && fail 'an escape sequence in a file'
out=$("$TOWERSCOPE" data show set --class 6 --count 1 --test --first 7) && grep -q '16: 6 star' <<<"$out" ||
    fail '--class with a number, --test and --first'
"$TOWERSCOPE" data show set --class 10 2>err && fail 'class 10 was found'
grep -q '"10"' err || fail 'the unknown class is not named'
(ulimit -f 100 && exec "$TOWERSCOPE" data make limited --images 1000) 2>err
[ $? = 1 ] && grep -q 'limited/data_batch_1.bin.*File too large' err && [ ! -e limited ] ||
    fail "a limit on the size of files: $(cat err)"
# killed at work: no piece of a file passes for a whole one
"$TOWERSCOPE" data make killed --images 20000 >out 2>err &
pid=$!
until [ -e killed/data_batch_3.bin.part ] || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
for file in killed/data_batch_?.bin; do
    [ "$(stat -c %s $file)" = $((4000 * 3073)) ] || fail "$file is a piece of a file"
done
"$TOWERSCOPE" data check killed >out 2>err || grep -q 'killed holds no [a-z_0-9]*.bin.*`towerscope data make`' err || fail "a set cut short: $(cat err)"
rm killed/*
: >killed/data_batch_1.bin.part
"$TOWERSCOPE" data check killed 2>err || grep -q 'data_batch_1.bin.part: what `towerscope data make` left' err || fail "its first piece: $(cat err)"
rm -r killed
"$TOWERSCOPE" data show set --first 99999 >out 2>err
[ $? = 4 ] && [ ! -s out ] && grep -q 'no such image: set has [0-9]* training images' err ||
    fail "an image that is not there: $(cat out err)"
"$TOWERSCOPE" data show set --count 1 --width 1 >/dev/null || fail 'a narrow terminal'
if script -qec true /dev/null >/dev/null 2>&1 && locale -a 2>/dev/null | grep -qi '^c\.utf-\?8$'; then
    on_terminal() { env "$@" script -qec "'$TOWERSCOPE' data show set --count 2" /dev/null; }
    on_terminal LC_ALL=C.UTF-8 TERM=xterm-256color | grep -q $'\x1b\\[38;5;[0-9]*m.*▀' || fail 'no half blocks on a terminal'
    on_terminal LC_ALL=C.UTF-8 TERM=xterm-256color NO_COLOR=1 | grep -q $'\x1b' && fail 'colours in spite of NO_COLOR'
    on_terminal LC_ALL=C TERM=xterm-256color | grep -q $'\x1b\\|▀' && fail 'half blocks without UTF-8'
    on_terminal LC_ALL=C.UTF-8 TERM=dumb | grep -q $'\x1b' && fail 'colours on a dumb terminal'
fi

# ---- usage
for part in '' check make show order; do
    "$TOWERSCOPE" data $part --help | grep -q '^usage:' || fail "data $part --help"
done
for wrong in '' 'look' 'check' 'check a b' 'check --deep a' 'make' 'make -' 'make d --images' 'make d --images x' 'make d --images 4' \
    'make d --seed=-1' 'show generated --count 0' 'order set --towers 65'; do
    "$TOWERSCOPE" data $wrong >out 2>err
    rc=$?
    [ $rc = 2 ] || fail "data $wrong: exit $rc, 2 is expected"
    [ -s err ] && [ ! -s out ] || fail "data $wrong: says nothing on stderr, or something on stdout"
done
[ ! -e d ] || fail 'a folder was made by a wrong command'
"$TOWERSCOPE" data check "$(printf 'no\033[31msuch\nset')" 2>err && fail 'a set with control bytes in its name was found'
[ "$(wc -l <err)" = 1 ] && ! grep -q $'\x1b' err || fail 'control bytes of a name reach the terminal'

finish
