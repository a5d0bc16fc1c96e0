#!/usr/bin/env bash
# towerscope replay: a picture of a record, and what is told of a line or a file that is none.
set -u
cd "$TEST_TMP" || exit 1
fails=0

# EXIT TEXT ARGUMENT ...: how it ends and what it says
expect() {
    local wanted=$1 text=$2 said rc
    shift 2
    said=$("$TOWERSCOPE" replay "$@" 2>&1 </dev/null)
    rc=$?
    if [ $rc != "$wanted" ] || [[ $said != *"$text"* ]] || [ "$(wc -l <<<"$said")" != 1 ]; then
        echo "replay $*: exit $rc, expected $wanted; it says \"$said\", expected \"$text\""
        fails=$((fails + 1))
    fi
}

"$TOWERSCOPE" train good --runs runs --data generated --model softmax --towers 2 --batch 64 --steps 20 >/dev/null || exit 1
"$TOWERSCOPE" replay runs/good --svg good.svg --at 10 || fails=$((fails + 1)) # the control
grep -q '</svg>' good.svg || fails=$((fails + 1))

base64 /dev/urandom | head -n 20 >random.jsonl
: >empty.jsonl
for file in random.jsonl empty.jsonl; do
    expect 1 'no event in it' $file --svg none.svg
    expect 1 'no event in it' $file
done
[ ! -e none.svg ] || { echo "a picture of no record was written"; fails=$((fails + 1)); }
expect 2 '--svg wants a file' runs/good --svg
expect 2 '--svg wants a file' --svg
expect 2 '--at wants a step' runs/good --at
expect 2 'found "ten"' runs/good --at ten
expect 2 'found "7"' runs/good --size 7 --svg none.svg
expect 2 'from 40x10 to 500x500, found "10x5"' runs/good --size 10x5 --svg none.svg
expect 1 '--at: there is no step 99999: the record has steps 0 to 20' runs/good --at 99999 --svg none.svg
[ ! -e none.svg ] || { echo "a picture of a step that is not there was written"; fails=$((fails + 1)); }
(ulimit -f 8 && expect 1 "big.svg can't be written" runs/good --size 200x60 --svg big.svg && exit $fails) || fails=$((fails + 1))
[ ! -e big.svg ] || { echo "a piece of a picture was left"; fails=$((fails + 1)); }
expect 2 'no option "--sgv"' runs/good --sgv none.svg
expect 2 'takes one record, and "runs/good" is one too many' runs/good runs/good
expect 2 '--speed: expected a number from 0.01 to 1000, found "0x10"' runs/good --speed 0x10
expect 2 'a whole number from 0 on, found "1.5"' runs/good --at=1.5
expect 2 'the nearest is --size' runs/good --sise 80x24
expect 2 'wants the name of a run'
expect 4 'no run or file "nosuch"' nosuch
expect 1 'there is no screen "nix"; there are: Towers' runs/good --svg none.svg --screen nix
[ $fails = 0 ]
