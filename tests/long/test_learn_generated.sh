#!/usr/bin/env bash
# The generated set asks for a network that sees forms: cifar10 learns it within 1,000 steps, a linear model does not.
# test-timeout: 1800
. "$SOURCE/tests/support/test.sh"
precision() { # MODEL STEPS SEED TOWERS: the last precision it prints
    "$TOWERSCOPE" train "$1-$3" --data generated --model "$1" --steps "$2" --seed "$3" --towers "$4" --batch 128 \
        --distort on --runs runs 2>&1 | tee "$1-$3.out" | sed -n 's/.*precision @ 1 = \([0-9.]*\).*/\1/p' | tail -n 1
}
for seed in 1 2; do
    p=$(precision cifar10 1000 $seed 2)
    echo "cifar10, seed $seed: ${p:-nothing}"
    awk "BEGIN { exit !(${p:-0} >= 0.95) }" || fail "$(tail -n 20 cifar10-$seed.out)"
    p=$(precision softmax 2000 $seed 2)
    echo "softmax, seed $seed: ${p:-nothing}"
    awk "BEGIN { exit !(${p:-1} < 0.70) }" || fail "$(tail -n 20 softmax-$seed.out)"
done
finish
