#!/usr/bin/env bash
# cuDNN's plans for every convolution of the built-in models, on GPUs that are not here. Not a test of a GPU.
set -u
case $BUILD in
*/release) ;;
*) echo "cuDNN is not run under sanitizers"; exit 77 ;;
esac
if ! [ -x "$BUILD/tests/cuda/plans" ]; then
    echo "this build has no GPU plugin: no CUDA toolkit with cuDNN was found"
    exit 77
fi
out=$("$BUILD/tests/cuda/plans" 2>&1)
rc=$?
echo "$out"
[ $rc = 0 ] || exit $rc
# every architecture, at every precision that it has; each with plans
for line in 75:f32 75:tf32 {80,86,90,100,120}:{f32,tf32,bf16}; do
    grep -Eq "sm_${line%:*} +${line#*:} +[1-9][0-9]* plans.*, ([1-9][0-9]*) of \\1 other shards by the same engine" <<<"$out" ||
        { echo "no plans for $line, or other engines for other shards"; exit 1; }
done
