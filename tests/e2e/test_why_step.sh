#!/usr/bin/env bash
# The tutorial's network with 4 towers, one step taken apart: the proof within rounding, every wrong way beside what
# a step really trained that way says; a picture of the screen; a run under the sum, and its way back.
. "$SOURCE/tests/support/test.sh"
train() { "$TOWERSCOPE" train "$@" --data generated --eval-every 0 --checkpoint-every 0 >out 2>err </dev/null || fail "train $1: $(cat err)"; }
why() { sed -n 's/.*"event":"why"/&/p' "runs/$1/events.jsonl" | head -n 1; }
# figure LINE KEY: the first number of that name
figure() { echo "$1" | grep -o "\"$2\":[0-9.e+-]*" | head -n 1 | cut -d: -f2; }
near() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { d = a - b; if (d < 0) d = -d; s = b < 0 ? -b : b; exit !(a != "" && b != "" && d <= t * s) }'; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a + 0 <= b + 0) }'; }

# ---- even shards of cifar10
printf '@2 why on\n@3 why off\n' >script
train even --model cifar10 --towers 4 --batch 16 --lr 0.05 --steps 3 --script script
line=$(why even)
[ -n "$line" ] || fail "no why event"
below "$(figure "$line" loss_difference)" 1e-5 || fail "loss differs: $line"
below "$(figure "$line" gradient_difference)" 1e-4 || fail "gradient differs: $line"
alternative() { echo "$1" | grep -o "{\"name\":\"$2\"[^}]*}"; }
for rule in unscoped sum last decay-per-tower; do
    printf '@2 why apply %s\n' $rule >script
    train "really-$rule" --model cifar10 --towers 4 --batch 16 --lr 0.05 --steps 3 --script script
    step=$(grep '"event":"step"' "runs/really-$rule/events.jsonl" | sed -n 3p)
    told=$(alternative "$line" $rule)
    real=$(echo "$step" | sed 's/"towers":\[.*\]//')
    near "$(figure "$told" grad_norm)" "$(figure "$real" grad_norm)" 1e-5 || fail "$rule: |g| $told, really $real"
    near "$(figure "$told" printed_loss)" "$(figure "$real" loss)" 1e-5 || fail "$rule: prints $told, really $real"
done

# ---- uneven shards: the plain mean prints what the view says
printf '@2 why on\n' >script
train uneven --model mlp --towers 4 --batch 18 --lr 0.05 --steps 3 --script script
line=$(why uneven)
printf '@2 why apply plain-mean\n' >script
train plain --model mlp --towers 4 --batch 18 --lr 0.05 --steps 3 --script script
real=$(grep '"event":"step"' runs/plain/events.jsonl | sed -n 3p | sed 's/"towers":\[.*\]//')
told=$(alternative "$line" plain-mean)
near "$(figure "$told" printed_loss)" "$(figure "$real" loss)" 1e-5 || fail "plain mean: $told, really $real"
near "$(figure "$told" grad_norm)" "$(figure "$real" grad_norm)" 1e-5 || fail "plain mean: $told, really $real"
near "$(figure "$told" printed_loss)" "$(figure "${line#*\"event\":\"why\"}" loss)" 1e-9 && fail "the plain mean differs here"

# ---- the screen as a picture
"$TOWERSCOPE" replay even --screen why --at 3 --svg why.svg >out 2>err || fail "svg: $(cat err)"
grep -q '<svg ' why.svg && grep -q 'tower_0/local3/weight_loss' why.svg && grep -q '</svg>' why.svg || fail "the picture"
# whatever fonts its reader has, each character stands in its cell: dots and lines are drawn, others are placed one by one
"$TOWERSCOPE" replay even --screen towers --svg towers.svg >out 2>err || fail "svg: $(cat err)"
cat >grid.py <<'END'
import sys, xml.dom.minidom as dom
for name in sys.argv[1:]:
    document = dom.parse(name)
    for text in document.getElementsByTagName("text"):
        words, place = text.firstChild.data, float(text.getAttribute("x")) / 8.4
        assert abs(place - round(place)) < 0.02, (name, words, place)
        assert len(words) == 1 or words.isascii() and len(words) * 8.4 - float(text.getAttribute("textLength")) < 0.1, (name, words)
        assert not any("\u2800" <= c < "\u2900" for c in words), (name, words)
    dots = [p.getAttribute("d") for p in document.getElementsByTagName("path")]
    assert all(0 <= float(d[1:].split("h")[0].split()[0]) <= 1010 for d in dots), name
    assert len(dots) > (4 if name == "towers.svg" else -1), (name, len(dots))
END
! command -v python3 >/dev/null || # only Python's reader of XML is at hand for this
    python3 grid.py why.svg towers.svg 2>err || fail "not XML, or off the grid: $(cat err)"
"$TOWERSCOPE" replay even --screen nowhere --svg no.svg >out 2>err && fail "a screen that is not there"
grep -q 'there is no screen "nowhere"; there are: Towers Why' err || fail "$(cat err)"
[ ! -e no.svg ] || fail "a picture of nothing"
finish
