#!/usr/bin/env bash
# towerscope replay: a picture of a record, and what is told of a line or a file that is none.
. "$SOURCE/tests/support/test.sh"

# replay says one line, with the words.
one_line() { # EXIT WORDS ARGUMENT...
    expect "$1" "$2" replay "${@:3}"
    [ "$(cat out err | wc -l)" = 1 ] || fail "replay ${*:3}: more than one line: $(cat out err)"
}

"$TOWERSCOPE" train good --runs runs --data generated --model softmax --towers 2 --batch 64 --steps 20 >out 2>&1 || fatal "train: $(cat out)"
"$TOWERSCOPE" replay runs/good --svg good.svg --at 10 && grep -q '</svg>' good.svg || fail 'the control'

base64 /dev/urandom | head -n 20 >random.jsonl
: >empty.jsonl
for file in random.jsonl empty.jsonl; do
    one_line 1 'no event in it' $file --svg none.svg
    one_line 1 'no event in it' $file
done
[ ! -e none.svg ] || fail "a picture of no record was written"
one_line 2 '--svg wants a file' runs/good --svg
one_line 2 '--svg wants a file' --svg
one_line 2 '--svg is empty' runs/good --svg ''
"$TOWERSCOPE" replay runs/good --svg - --at=10 --theme=dark | cmp good.svg - && [ ! -e - ] || fail 'a picture to standard output'
cp runs/good/events.jsonl kept.jsonl
one_line 3 'runs/good/events.jsonl is the record itself' runs/good --svg runs/good/events.jsonl
ln -s runs/good/events.jsonl link.svg
one_line 3 'link.svg is the record itself' runs/good/events.jsonl --svg link.svg
cmp -s kept.jsonl runs/good/events.jsonl || fail 'a picture was written over its record'
sed '5s/.*/no event/' kept.jsonl >odd.jsonl
one_line 0 "odd.jsonl: 1 line can't be read" odd.jsonl --svg odd.svg
one_line 2 '--at wants a step' runs/good --at
one_line 2 'found "ten"' runs/good --at ten
one_line 2 'found "7"' runs/good --size 7 --svg none.svg
one_line 2 'from 40x10 to 500x500, found "10x5"' runs/good --size 10x5 --svg none.svg
one_line 1 '--at: there is no step 99999: the record has steps 0 to 20' runs/good --at 99999 --svg none.svg
[ ! -e none.svg ] || fail "a picture of a step that is not there was written"
(ulimit -f 8 && one_line 1 "big.svg can't be written" runs/good --size 200x60 --svg big.svg)
[ ! -e big.svg ] || fail "a piece of a picture was left"
one_line 2 'no option "--sgv"' runs/good --sgv none.svg
one_line 2 'takes one record, and "runs/good" is one too many' runs/good runs/good
one_line 2 '--speed: expected a number from 0.01 to 1000, found "0x10"' runs/good --speed 0x10
one_line 2 'a whole number from 0 on, found "1.5"' runs/good --at=1.5
one_line 2 'the nearest is --size' runs/good --sise 80x24
one_line 2 'wants the name of a run'
one_line 4 'no run or file "nosuch"' nosuch
one_line 1 'there is no screen "nix"; there are: Towers' runs/good --svg none.svg --screen nix
finish
