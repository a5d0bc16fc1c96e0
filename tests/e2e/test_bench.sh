#!/usr/bin/env bash
# towerscope bench: it runs, its tables have their rows, wrong usage is told. Nothing here looks at a time.
. "$SOURCE/tests/support/test.sh"

"$TOWERSCOPE" bench --rounds 1 --seconds 0 --batch 8 --threads 1,2 --towers 1,3 --scripts "" >out 2>errors ||
    fail "bench: exit $?"
out=$(cat out)
echo "$out"
[ -s errors ] && fail "progress is shown where there is no terminal"
grep -qE '^peak .* GFLOP/s on 1 thread, .* GFLOP/s on 2 threads$' <<<"$out" || fail "no peak"
[ "$(grep -cE '^ +[12] +[13] +[0-9]+ ' <<<"$out")" = 8 ] || fail "expected 8 rows of rates"

# What a run does beside the network's work: the parts come to the whole.
rows=$(grep -E ' % +\(.*\) += ' <<<"$out")
[ "$(wc -l <<<"$rows")" = 4 ] || fail "expected 4 rows of the rest of a step"
sed -E 's/^.* (-?[0-9.]+) % +\(.*\) += +/\1 /' <<<"$rows" |
    awk '{ sum = $2 + $3 + $4 + $5; d = sum - $1; if (NF != 5 || !(d * d < 0.01)) exit 1 }' || fail "the parts are not the whole"

# Ratios: threads with the peak's beside them, then towers. The one that others are compared with is named second.
number='[0-9]+\.[0-9]+ +\([0-9.]+-[0-9.]+\)'
for words in '2 threads against 1, 1 tower' '2 threads against 1, 3 towers'; do
    grep -qE "^$words +$number +$number$" <<<"$out" || fail "no ratio: $words"
done
grep -qE "^3 towers against 1, 2 threads +$number$" <<<"$out" || fail "no ratio of towers"
[ "$(grep -c ' against ' <<<"$out")" = 3 ] || fail "expected 3 ratios"
[ "$(grep -cE '^local3 .* [0-9]+ % .* [0-9]+ %$' <<<"$out")" = 2 ] || fail "expected the layers on 1 and on 2 threads"
grep -q 'nan' <<<"$out" && fail "a number is none"

# One thread, no PyTorch where it should be; and on a terminal, if one can be had, it says how far it is.
set -- "$TOWERSCOPE" bench --rounds 1 --seconds 0 --batch 8 --threads 1 --towers 1 --isa plain --scripts no/such
if script -qec true /dev/null >/dev/null 2>&1; then
    out=$(script -qec "$(printf '%q ' "$@")" /dev/null | tr '\r' '\n') || fail "a bench on a terminal"
    grep -q '^opening all that is to be measured' <<<"$out" || fail "no progress on a terminal"
else
    out=$("$@") || fail "a bench without PyTorch: exit $?"
fi
grep -q '^compared .*PyTorch .*: no/such/torch_step.py' <<<"$out" || fail "not said that the script is missing"
grep -q ', plain$' <<<"$out" || fail "not said which instruction set"
grep -q ' against ' <<<"$out" && fail "a ratio of nothing"
grep -qE '^peak .* GFLOP/s on 1 thread$' <<<"$out" || fail "no peak of one thread"

# Libraries beside it: here something that answers as their scripts do.
mkdir scripts
touch scripts/torch_step.py scripts/tensorflow_step.py
printf '#!/usr/bin/env bash\necho "ready 9.$#"; while read -r; do echo 500; done\n' >python
chmod +x python
bench_beside() { # INTERPRETER OF TENSORFLOW
    "$TOWERSCOPE" bench --rounds 1 --seconds 0 --batch 8 --threads 1 --towers 1 --scripts scripts --python ./python \
        --tensorflow "$1" || fail "a bench with libraries: exit $?"
}
out=$(bench_beside ./python)
[ "$(grep -cE '^threads .* x S2  x S4  x TF ' <<<"$out")" = 2 ] || fail "expected three ratios in both tables"
for words in 'S2: PyTorch 9.5' 'S4: PyTorch 9.7' 'TF: TensorFlow 9.5'; do # versions: with how many words it was called
    grep -qE "^ +1 +1 +500 +\(500-500\) +$words, " <<<"$out" || fail "no row: $words"
done
out=$(bench_beside false)
grep -qE '^compared +no TensorFlow beside it: false has no TensorFlow' <<<"$out" || fail "not said that TensorFlow is missing"
[ "$(grep -cE '^threads .* x S2  x S4  ' <<<"$out")" = 2 ] || fail "expected PyTorch alone beside it"
grep -q 'x TF' <<<"$out" && fail "a column of what is not there"

# A signal ends it, and takes the records of its runs away.
mkdir temporary
: >signalled
TMPDIR=$PWD/temporary "$TOWERSCOPE" bench --rounds 50 --seconds 2 --batch 2 --threads 1 --towers 1 --scripts "" \
    >signalled 2>errors &
bench=$!
await -p $bench grep -q '^network' signalled
kill -TERM $bench
wait $bench
[ $? = 130 ] || fail "a signal: expected exit 130"
grep -q 'interrupted' errors || fail "not said that it was interrupted"
[ -z "$(ls -A temporary)" ] || fail "left behind: $(ls -A temporary)"

for wrong in "--rounds 0" "--towers 1,x" "--towers 1,,3" "--threads 1," "--seconds -1" "--threads" "--nothing" "more"; do
    "$TOWERSCOPE" bench $wrong >/dev/null 2>errors
    [ $? = 2 ] || fail "bench $wrong: expected exit 2"
    [ -s errors ] || fail "bench $wrong: nothing said"
done
"$TOWERSCOPE" bench --towers 9 --batch 8 --rounds 1 --scripts "" 2>errors >/dev/null && fail "9 towers for 8 images"
grep -q '9 towers' errors || fail "not said why"
"$TOWERSCOPE" bench --isa sse9 2>errors >/dev/null && fail "an unknown instruction set"
grep -q 'sse9' errors || fail "not said which"
"$TOWERSCOPE" bench --help | grep -q -- --rounds || fail "no help"
finish
