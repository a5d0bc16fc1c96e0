#!/usr/bin/env bash
# The script that checks a GPU works where there is none: its bundle unpacks, it says that there is no device and fails,
# and on a simulated device its comparisons run.                                        test-timeout: 300
. "$SOURCE/tests/support/test.sh"
case $BUILD in
*/release) ;;
*) echo "bundles are made of the release build"; exit 77 ;;
esac
[ -e "$BUILD/backend_cuda.so" ] || { echo "this build has no GPU plugin: no CUDA toolkit was found"; exit 77; }
if [ -e /dev/nvidiactl ]; then
    echo "there is a driver here: run tests/gpu/check.sh itself"
    exit 77
fi
bundle=$TEST_TMP/bundle.tar.gz
"$SOURCE/tests/gpu/bundle.sh" "$BUILD" "$bundle" || fail "no bundle"
[ "$(stat -c %s "$bundle")" -le 60000000 ] || fail "the bundle is larger than 60 MB"
for file in towerscope backend_cuda.so operations throughput check.sh torch_rate.py torch_step.py small.ini; do
    tar -tzf "$bundle" "towerscope-gpu/$file" >/dev/null || fail "the bundle lacks $file"
done
tar -tzf "$bundle" | grep -qE 'lib(cudnn|cublas|nccl|cuda\.)' && fail "the bundle carries a library of the other machine"
out=$(bash "$SOURCE/tests/gpu/check.sh" "$bundle" 2>&1)
rc=$?
[ $rc = 1 ] || fail "without a device: exit $rc: $out"
[[ $out == *"no device: towerscope: device cuda:0 cannot be used: no NVIDIA driver on this machine"* ]] ||
    fail "without a device it says: $out"

# the comparisons, on a simulated GPU
[ -e "$BUILD/sim/backend_sim.so" ] || { echo "no simulated GPU in this build"; exit 77; }
# PyTorch answers as torch_rate.py does: the turns and the table are what is tried here
mkdir "$TEST_TMP/bin"
cat >"$TEST_TMP/bin/python3" <<'SCRIPT'
#!/usr/bin/env bash
[ "$1" = -c ] && { [[ $2 == *find_spec* ]]; exit; }
echo made-up
while read -r precision batch setting; do
    if [ "$precision $setting" = "tf32 graph" ]; then echo "# tf32 $batch graph ['no']"; else echo "$precision $batch $setting 1000"; fi
done
SCRIPT
chmod +x "$TEST_TMP/bin/python3"
out=$(PATH=$TEST_TMP/bin:$PATH bash "$SOURCE/tests/gpu/check.sh" "$bundle" --devices sim:0 2>&1)
rc=$?
echo "$out"
[ $rc = 0 ] || fail "on sim:0: exit $rc"
for words in 'ok    operations against ref64' 'ok    losses of the processor, f32, lr 0.1, 2 towers' \
    'ok    losses of the processor, f32, lr 0.01, 1 towers' 'ok    deterministic: twice the same record' \
    'ok    graphs and single launches' "ok    deterministic: an image's forward bytes are the same in any shard" \
    'ok    losses of the processor, bf16, lr 0.01, 2 towers' 'PyTorch made-up: channels last' 'This says nothing about a GPU'; do
    [[ $out == *"$words"* ]] || fail "it does not say: $words"
done
grep -qE '^\| bf16 \| 6 \| [0-9]+ \| [0-9]+ \| not measured \| 1000 \| 1000 \| 1000 \| [0-9.]+ \|$' <<<"$out" || fail "no row of bf16"
grep -qE '^\| tf32 \| 6 \| [0-9]+ \| [0-9]+ \| not measured \| 1000 \| not measured \| 1000 \| [0-9.]+ \|$' <<<"$out" ||
    fail "no row of tf32"
finish
