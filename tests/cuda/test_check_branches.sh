#!/usr/bin/env bash
# What check.sh says when something on a machine with a GPU is wrong, absent or slow: the program, the driver's tools and
# PyTorch are stand-ins here, so that each of its answers is heard once. Nothing is computed.
. "$SOURCE/tests/support/test.sh"
case $BUILD in
*/release) ;;
*) echo "one build is enough for a script"; exit 77 ;;
esac
here=$TEST_TMP/bundle
mkdir -p "$here/lib" "$TEST_TMP/bin" "$TEST_TMP/empty" "$TEST_TMP/tmp"
export TMPDIR=$TEST_TMP/tmp STUB
stub() { cat >"$1" && chmod +x "$1"; }

# STUB: what goes wrong, each word between spaces
stub "$here/towerscope" <<'SCRIPT'
#!/usr/bin/env bash
is() { [[ " $STUB " == *" $1 "* ]]; }
die() { echo "$*" >&2; exit 1; }
case $1 in
--version) is unstartable && { echo "libjansson.so.4: cannot open shared object file" >&2; exit 127; }; exit 0 ;;
doctor) printf 'devices\n  cuda:0\n\n'; exit ;;
diff) is diff && die "they differ from step 3 on"; exit 0 ;;
esac
name=$2 runs= steps=
while (($#)); do
    case $1 in
    --runs) runs=$2 ;;
    --steps) steps=$2 ;;
    esac
    shift
done
is hang:$name && { trap '' TERM; echo "about to wait"; while :; do sleep 1; done; } # it no longer listens
is kill:$name && { echo "about to load"; kill -SEGV $$; }
is fail:$name && die "towerscope: the GPU is on fire"
[ $name = gpu-two ] && is one-gpu && die "towerscope: device cuda:0,cuda:1 cannot be used: there is no GPU of number 1 here; the last is 0"
mkdir -p "$runs/$name"
for ((i = 1; i <= steps; i++)); do
    loss=2.$((1000 - i))
    is wrong:$name && ((i == 7)) && loss=2.5
    is nan:$name && ((i == steps)) && loss=null
    is short:$name && ((i == steps)) && break
    echo "{\"event\":\"step\",\"step\":$i,\"towers\":[{\"loss\":9}],\"loss\":$loss,\"grad_norm\":1,\"grad_norm_mean\":1}"
done >"$runs/$name/events.jsonl"
SCRIPT
stub "$here/operations" <<'SCRIPT'
#!/usr/bin/env bash
word=operations
[[ $* == *--shards* ]] && word=shards
[[ " $STUB " == *" $word "* ]] || exit 0
echo "$word: off by 1 at 7"
exit 1
SCRIPT
stub "$here/throughput" <<'SCRIPT'
#!/usr/bin/env bash
[[ " $STUB " == *" throughput "* ]] && { echo "no memory" >&2; exit 1; }
while read -r precision batch towers; do echo "$precision $batch $towers $((batch * towers))"; done
SCRIPT
stub "$TEST_TMP/bin/compute-sanitizer" <<'SCRIPT'
#!/usr/bin/env bash
[[ " $STUB " == *" memory "* ]] && { echo "========= Invalid __global__ read of size 4 bytes"; exit 99; }
[[ " $STUB " == *" refuses "* ]] && { echo "Error: this device is not supported"; exit 1; }
echo "========= ERROR SUMMARY: 0 errors"
SCRIPT
stub "$TEST_TMP/bin/python3" <<'SCRIPT'
#!/usr/bin/env bash
[ "$1" = -c ] && { [[ $2 == *find_spec* && " $STUB " != *" no-torch "* ]]; exit; }
[[ " $STUB " == *" torch-dies "* ]] && { echo "PyTorch sees no GPU" >&2; exit 1; }
echo made-up
while read -r precision batch setting; do echo "$precision $batch $setting 64"; done
SCRIPT
cp "$TEST_TMP/bin/python3" "$TEST_TMP/bin/python"
stub "$TEST_TMP/bin/nvidia-smi" <<'SCRIPT'
#!/usr/bin/env bash
echo "a made-up GPU, 1.0, 1 MiB"
SCRIPT
cp "$SOURCE/tests/gpu/check.sh" "$SOURCE/tests/gpu/small.ini" "$here/"
printf 'libnowhere.so.13\n' >"$here/libraries"

check() { # EXPECTED STUB [OPTIONS]: its words into $out
    STUB=$2
    out=$(PATH=$TEST_TMP/bin:$PATH timeout 100 bash "$here/check.sh" "${@:3}" 2>&1)
    local rc=$?
    [ $rc = "$1" ] || fail "$2: exit $rc, expected $1: $out"
}
says() { local words; for words in "$@"; do [[ $out == *"$words"* ]] || fail "with $STUB it does not say \"$words\": $out"; done; }

check 0 ''
says 'library missing: libnowhere.so.13, in no folder' 'a made-up GPU' 'ok    operations against ref64' \
    'ok    losses of the processor, f32, lr 0.1, 4 towers: 10 steps' 'ok    losses of the processor, f32, lr 0.01, 4 towers: 50 steps' \
    'ok    losses of the processor, tf32' 'ok    losses of the processor, bf16' 'ok    losses of the processor, two GPUs' \
    'ok    deterministic: twice the same record' 'ok    graphs and single launches' 'ok    compute-sanitizer' 'PyTorch made-up' \
    '| f32 | 128 | 128 | 256 | 512 | 64 | 64 | 64 | 8.00 |' '| bf16 | 8192 | 8192 |'
[[ $out != *FAIL* && $out != *"not measured"* ]] || fail "all is well, and it says: $out"

check 1 'operations shards wrong:gpu-0.01-2 nan:gpu-0.1-1 short:gpu-0.1-2 fail:gpu-bf16 fail:gpu-two diff wrong:eager memory throughput torch-dies'
says 'FAIL  operations against ref64' 'operations: off by 1 at 7' "FAIL  deterministic: an image's forward bytes" \
    'FAIL  losses of the processor, f32, lr 0.01, 2 towers' 'FAIL  losses of the processor, f32, lr 0.1, 1 towers' \
    'FAIL  losses of the processor, f32, lr 0.1, 2 towers' 'ok    losses of the processor, f32, lr 0.01, 1 towers' \
    'FAIL  a run with --precision bf16' 'the GPU is on fire' 'FAIL  two GPUs' 'FAIL  deterministic: twice' 'they differ from step 3' \
    'FAIL  graphs and single launches' 'first in step 7: 2.993 and 2.5' 'FAIL  compute-sanitizer: ========= Invalid' 'FAIL  throughput' 'skip  PyTorch: PyTorch sees no GPU'

check 0 'one-gpu refuses no-torch'
says 'skip  two GPUs: towerscope: device cuda:0,cuda:1 cannot be used: there is no GPU of number 1' \
    'skip  compute-sanitizer refuses here: Error: this device is not supported' 'skip  PyTorch: not installed' \
    '| f32 | 128 | 128 | 256 | 512 | not measured | not measured | not measured |  |'

check 1 'fail:probe'
says 'no device: towerscope: the GPU is on fire'
check 1 'kill:probe'
says 'no device: the program was ended by signal 11; the last words were: about to load'
check 1 hang:probe --seconds 12
says 'no device: no answer in its time; the last words were: about to wait'
check 1 unstartable
says 'the program does not start here: libjansson.so.4'

# what is no bundle
STUB=
cp "$SOURCE/tests/gpu/check.sh" "$TEST_TMP/empty/"
out=$(bash "$TEST_TMP/empty/check.sh" 2>&1) && fail "an empty folder is a bundle"
says 'no bundle is here'
out=$(bash "$TEST_TMP/empty/check.sh" "$here/small.ini" 2>&1) && fail "small.ini is a bundle"
says 'does not unpack'
out=$(bash "$TEST_TMP/empty/check.sh" --fast 2>&1) && fail "--fast is an option"
says 'unknown option --fast'
[ -z "$(ls -A "$TEST_TMP/tmp")" ] || fail "it leaves behind: $(ls "$TEST_TMP/tmp")"
finish
