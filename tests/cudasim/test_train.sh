#!/usr/bin/env bash
# The program on simulated GPUs: its losses are the CPU's, and its record tells which tower was on which GPU.
# test-timeout: 300; test-skip-under: thread (threads of kernels are contexts that it does not follow)
. "$SOURCE/tests/support/test.sh"
[ -e "$BUILD/sim/backend_sim.so" ] || {
    echo "this build has no simulated GPU: it takes a C++ compiler and the headers of CUDA and NCCL"
    exit 77
}
export TOWERSCOPE_PLUGINS=$BUILD/sim TOWERSCOPE_RUNS=$TEST_TMP/runs CUDASIM_GPUS=2
train() { # NAME DEVICES [OPTIONS]
    "$TOWERSCOPE" train "$1" --devices "$2" --data generated --model softmax --batch 20 --lr 0.01 --steps 20 \
        --seed 3 --eval-every 0 --checkpoint-every 0 "${@:3}" >"$TEST_TMP/$1.out" 2>&1
}
losses() { sed -n 's/^{"event":"step"[^[]*"loss":\([-0-9.e]*\),"grad_norm".*/\1/p' "$TOWERSCOPE_RUNS/$1/events.jsonl"; }

train on-cpu cpu --towers 4 || fail "$(cat "$TEST_TMP/on-cpu.out")"
train on-sim sim:0,sim:1 --towers 4 || fail "$(cat "$TEST_TMP/on-sim.out")"
largest=$(paste <(losses on-cpu) <(losses on-sim) | awk 'NF == 2 {d = $1 - $2; if (d < 0) d = -d; if (d > m) m = d; n++} END {if (n == 20) print m}')
[ -n "$largest" ] || fail "not 20 losses of both"
awk -v d="$largest" 'BEGIN {exit !(d <= 1e-4)}' || fail "the losses differ by $largest"
echo "cuda-sim: train --devices sim:0,sim:1 --towers 4, 20 steps: losses within $largest of the CPU's"

record=$TOWERSCOPE_RUNS/on-sim/events.jsonl
grep -q '"device":"sim:1","name":"cuda-sim: ' "$record" || fail "the record does not name the simulated GPUs"
grep -q '"tower":2,"device":"sim:0".*"tower":3,"device":"sim:1"' "$record" || fail "towers without their GPUs"

# the same bytes wherever the towers are
train det-1 sim:0 --towers 3 --deterministic && train det-2 sim:0,sim:1 --towers 3 --deterministic ||
    fail "$(cat "$TEST_TMP"/det-*.out)"
cmp <(losses det-1) <(losses det-2) || fail "--deterministic: one GPU and two give other losses"

# graphs against kernel by kernel
train eager sim:0,sim:1 --towers 4 --no-graphs || fail "$(cat "$TEST_TMP/eager.out")"
cmp <(losses on-sim) <(losses eager) || fail "graphs and --no-graphs give other losses"

# a step's figures are read while the next one runs: the record tells the same in the same order all the same
printf '@4 set lr 0.02\n@6 towers 2\n@9 set batch 15\n@12 save\n@13 step 3\n' >"$TEST_TMP/script"
order() { sed -E 's/^\{"event":"([a-z_]+)".*/\1 &/' "$TOWERSCOPE_RUNS/$1/events.jsonl" |
    awk '{at = match($0, /"(step|state)":[^,}]*/) ? substr($0, RSTART, RLENGTH) : ""; print $1, at}'; }
for on in cpu sim:0,sim:1; do # in the foreground it ends when it pauses
    train "told-${on%%:*}" "$on" --towers 3 --checkpoint-every 5 --script "$TEST_TMP/script" || fail "$(cat "$TEST_TMP/told-${on%%:*}.out")"
done
[ "$(grep -c '"event":"step"' "$TOWERSCOPE_RUNS/told-sim/events.jsonl")" = 16 ] || fail "not 16 steps: $(cat "$TEST_TMP/told-sim.out")"
diff <(order told-cpu) <(order told-sim) || fail "the record of the simulated GPUs (>) tells something else"

train twice sim:0,sim:0 && fail "one GPU twice was taken"
grep -q "sim:0 stands there twice" "$TEST_TMP/twice.out" || fail "$(cat "$TEST_TMP/twice.out")"
train bf16 sim:0,sim:1 --towers 2 --precision bf16 || fail "$(cat "$TEST_TMP/bf16.out")"
"$TOWERSCOPE" eval bf16 --devices cpu >"$TEST_TMP/eval.out" 2>&1 || fail "$(cat "$TEST_TMP/eval.out")"
for precision in tf32 bf16; do
    train never cpu --precision $precision && fail "the processor took --precision $precision"
    grep -q -- "--precision $precision: the device cpu computes in f32 and nothing else; take --precision f32" "$TEST_TMP/never.out" ||
        fail "$(cat "$TEST_TMP/never.out")"
done
train third sim:2 && fail "a GPU that is not there was taken"
grep -q "there is no GPU of number 2" "$TEST_TMP/third.out" || fail "$(cat "$TEST_TMP/third.out")"
"$TOWERSCOPE" eval on-sim --devices sim:1 >"$TEST_TMP/eval.out" 2>&1 || fail "$(cat "$TEST_TMP/eval.out")"
finish
