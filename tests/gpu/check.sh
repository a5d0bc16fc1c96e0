#!/usr/bin/env bash
# Everything that only a GPU can show, in at most six minutes: check.sh [BUNDLE] [--devices NAME] [--seconds N]
#
#   check.sh towerscope-gpu.tar.gz      unpack what `make bundle` made, and run what is in it
#   check.sh                            inside an unpacked bundle
#   check.sh --devices sim:0            the same comparisons in small on a simulated GPU, or cpu: that the script works,
#                                       nothing more
#
# Exit code 0: all that could be tried is right. What was skipped is listed with its reason. Needs bash, awk, tar and
# glibc 2.34; cuDNN, cuBLAS and NCCL are found in the loader's folders, the toolkit or Python's nvidia packages.
set -u
here=$(cd "$(dirname "$0")" && pwd)
devices=cuda:0 limit=360 bundle=
while (($#)); do
    case $1 in
    --devices) devices=${2:?--devices needs a name}; shift ;;
    --seconds) limit=${2:?--seconds needs a number}; shift ;;
    -h | --help) sed -n '2,10s/^# \?//p' "$0"; exit 0 ;;
    -*) echo "check.sh: unknown option $1" >&2; exit 2 ;;
    *) bundle=$1 ;;
    esac
    shift
done
work=$(mktemp -d "${TMPDIR:-/tmp}/towerscope-gpu.XXXXXX")
torch_pid=
trap '[ -z "$torch_pid" ] || kill -9 "$torch_pid" 2>/dev/null; rm -rf "$work"' EXIT
if [ -n "$bundle" ]; then
    tar -xzf "$bundle" -C "$work" || { echo "check.sh: $bundle does not unpack" >&2; exit 1; }
    bash "$work/towerscope-gpu/check.sh" --devices "$devices" --seconds "$limit"
    exit $?
fi
[ -x "$here/towerscope" ] || { echo "check.sh: no bundle is here; \`make bundle\` makes one" >&2; exit 2; }
simulated=
[[ $devices == cuda* ]] || simulated=1
begun=$SECONDS limit=$((limit - 6)) # for what has to be killed at the end of its time, and the table
results=() failed=0
# The comparisons have a good half of the time, so that whatever they meet, the table is measured in the rest.
part=$limit
[ -n "$simulated" ] || part=$((limit * 11 / 20))
left() { echo $((part - (SECONDS - begun))); }
within() { # SECONDS: those, or what is left
    local l
    l=$(left)
    echo $((l < 1 ? 1 : l < $1 ? l : $1))
}
# Whatever hangs ends, also what no longer listens to a signal: 124 then, as when it does.
limited() { # SECONDS COMMAND...
    local seconds start=$SECONDS rc
    seconds=$(within "$1")
    shift
    timeout -k 2 "$seconds" "$@"
    rc=$?
    ((rc != 137 || SECONDS - start < seconds)) || rc=124
    return $rc
}
good() { results+=("ok    $1"); echo "ok    $1"; }
bad() { results+=("FAIL  $1"); echo "FAIL  $1"; failed=1; }
skip() { results+=("skip  $1"); echo "skip  $1"; }

# ---- libraries: this machine's, which fit each other and its NVIDIA's; those that it lacks lie in lib/
export TOWERSCOPE_PLUGINS=$here XDG_STATE_HOME=$work/state # nothing of this machine's user is touched
mkdir "$work/state"
known=$(ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null)
mkdir "$work/lib"
for library in "$here"/lib/*; do
    [ ! -e "$library" ] || [[ $known == *"${library##*/} (libc6,"* ]] || ln -s "$library" "$work/lib/"
done
path=$work/lib
ours() { LD_LIBRARY_PATH=$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"; }
if ! out=$(ours limited 20 "$here/towerscope" --version 2>&1); then
    path=$here/lib # older ones than it was built with: all of ours
    ours limited 20 "$here/towerscope" --version >/dev/null 2>&1 || {
        echo "the program does not start here: ${out##*$'\n'}"
        exit 1
    }
fi
nvidia_folders() {
    local python
    for python in python3 python; do
        command -v $python >/dev/null && limited 10 $python -c '
import glob, site, sys
for p in sys.path + site.getsitepackages() + [site.getusersitepackages()]:
    print(*glob.glob(p + "/nvidia/*/lib") + glob.glob(p + "/torch/lib"), sep="\n")' 2>/dev/null
    done
    ls -d /usr/local/cuda*/lib64 /usr/local/cuda*/lib /usr/local/cuda*/targets/*/lib /opt/cuda/lib64 2>/dev/null
}
if [ -z "$simulated" ]; then
    folders=$(nvidia_folders | sort -u) loader=${LD_LIBRARY_PATH:-}
    loader=${loader//:/ }
    while read -r library; do
        [ -e "$here/lib/$library" ] || [[ $known == *"$library (libc6,"* ]] && continue
        found=
        for folder in $loader $folders; do
            [ -e "$folder/$library" ] && { found=$folder; break; }
        done
        [ -n "$found" ] || { echo "library missing: $library, in no folder of the loader, the toolkit or Python"; continue; }
        [[ :$path: == *":$found:"* ]] || path=$path:$found
    done <"$here/libraries"
    for folder in /usr/local/nvidia/lib64 /usr/lib/wsl/lib; do # a driver that the loader was not told of, last
        [[ $known != *"libcuda.so.1 (libc6,"* && -e $folder/libcuda.so.1 ]] && path=$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}:$folder
    done
fi

# ---- is there a device?
echo "== towerscope on $devices"
ours limited 60 "$here/towerscope" doctor | sed -n '/^devices/,/^terminal/{/^terminal/d;p}'
out=$(ours limited 60 "$here/towerscope" train probe --runs "$work/runs" --devices "$devices" --data generated \
    --model softmax --batch 8 --towers 1 --steps 1 2>&1)
rc=$?
if [ $rc != 0 ]; then
    [ $rc != 124 ] || out="no answer in its time; the last words were: ${out##*$'\n'}"
    ((rc < 129)) || out="the program was ended by signal $((rc - 128)); the last words were: ${out##*$'\n'}"
    echo "no device: ${out##*$'\n'}"
    exit 1
fi
if [ -n "$simulated" ]; then
    echo "Dry run: $devices is the processor, simulating a GPU or not. This says nothing about a GPU."
    model=(--model "$here/small.ini" --batch 12) hot=2 cool=3 counts=(1 2)
else
    command -v nvidia-smi >/dev/null && limited 15 nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
    model=(--model cifar10 --batch 128) hot=10 cool=50 counts=(1 2 4)
fi

# ---- PyTorch is loaded meanwhile
python=$(for p in python3 python; do
    limited 10 $p -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch"))' 2>/dev/null && echo $p && break
done)
measured=cifar10 seconds=0.3 batches=(128 8192 1024)
[ -z "$simulated" ] || { measured=$here/small.ini seconds=0.02 batches=(6); }
mkfifo "$work/ours.ask" "$work/ours.say" "$work/torch.ask" "$work/torch.say"
if [ -n "$python" ]; then
    "$python" "$here/torch_rate.py" --seconds "$seconds" <"$work/torch.ask" >"$work/torch.say" 2>"$work/torch.err" &
    torch_pid=$!
    exec 7>"$work/torch.ask" 8<"$work/torch.say"
fi

# ---- operations against ref64
brief=${simulated:+--brief}
operations() { # WORDS SECONDS OPTIONS...
    local words=$1 seconds
    seconds=$(within "$2")
    shift 2
    ours limited "$seconds" "$here/operations" "$devices" $brief "$@" >"$work/operations" 2>&1
    local rc=$?
    case $rc in
    0) good "$words" ;;
    124) bad "$words: not done after $seconds s; done: $(sed -n 's/^\[ *OK \] *//p' "$work/operations" | tr '\n' ' ')" ;;
    *) bad "$words"; [ $rc -le 128 ] || echo "ended by signal $((rc - 128))" ;;
    esac
    [ $rc = 0 ] || grep -vE '^\[' "$work/operations" | tail -n 15
}
operations "operations against ref64" 90
operations "deterministic: an image's forward bytes are the same in any shard" 30 --shards

# ---- training against the processor
train() { # NAME DEVICES OPTIONS...
    local name=$1 on=$2
    shift 2
    (($(left) > 3)) || { echo "$name: no time is left for it" | tee "$work/$name.out"; return 1; }
    ours limited 40 "$here/towerscope" train "$name" --runs "$work/runs" --devices "$on" --data generated --seed 3 \
        --eval-every 0 --checkpoint-every 0 "${model[@]}" "$@" >"$work/$name.out" 2>&1
    local rc=$?
    [ $rc != 0 ] || return 0
    tail -n 3 "$work/$name.out"
    case $rc in
    124) echo "$name: not done in its time; that was the last it said" ;;
    *) ((rc < 129)) || echo "$name: ended by signal $((rc - 128))" ;;
    esac
    return 1
}
losses() { # NAME: the averaged losses, a step a line
    sed -nE '/"event":"step"/s/.*"step":([0-9]+).*"loss":([^,]*),"grad_norm":[^,]*,"grad_norm_mean".*/\1 \2/p' \
        "$work/runs/$1/events.jsonl"
}
compare() { # A B TOLERANCE WORDS: the same losses?
    local answer
    answer=$(paste -d ' ' <(losses "$1") <(losses "$2") | awk -v most="$3" '
        NF != 4 || $1 != $3 { wrong = 1 }
        { d = $2 - $4; d = d < 0 ? -d : d; if (!(d <= most)) wrong = 1; if (d > worst) worst = d
          if (wrong && !first) first = NR ": " $2 " and " $4 }
        $2 !~ /^[-0-9.e+]+$/ || $4 !~ /^[-0-9.e+]+$/ { wrong = 1; if (!first) first = NR ": " $2 " and " $4 }
        END { printf "%d steps, largest difference %.3g, allowed %g", NR, worst, most
            if (first) printf "; first in step %s", first
            exit wrong || !NR }')
    if [ $? = 0 ]; then good "$4: $answer"; else bad "$4: $answer"; fi
}
for rate in 0.1 0.01; do
    steps=$cool
    [ $rate = 0.1 ] && steps=$hot
    train "cpu-$rate" cpu --lr $rate --steps $steps --towers 1 || bad "the processor's run at lr $rate"
    for n in "${counts[@]}"; do
        train "gpu-$rate-$n" "$devices" --lr $rate --steps $steps --towers $n &&
            compare "cpu-$rate" "gpu-$rate-$n" 1e-4 "losses of the processor, f32, lr $rate, $n towers" ||
            bad "a run at lr $rate, $n towers"
    done
done
for precision in tf32 bf16; do
    train "gpu-$precision" "$devices" --lr 0.01 --steps $cool --towers 2 --precision $precision &&
        compare cpu-0.01 "gpu-$precision" 0.03 "losses of the processor, $precision, lr 0.01, 2 towers" ||
        bad "a run with --precision $precision"
done
[ -n "$simulated" ] || sed -nE '/"event":"step".*"step":30,/{s/.*"(load_ms":[^,]*),.*"(forward_ms":[^,]*),"(backward_ms":[^,}]*).*"(average_ms":[^,]*),"(update_ms":[^,}]*).*/a step of one tower, f32: "\1, "\2, "\3, "\4, "\5/p;q}' \
    "$work/runs/gpu-0.01-1/events.jsonl" 2>/dev/null
if [[ $devices == *:0 ]]; then
    two=$devices,${devices%0}1
    if train gpu-two "$two" --lr 0.01 --steps $cool --towers 4; then
        compare cpu-0.01 gpu-two 1e-4 "losses of the processor, two GPUs, 4 towers"
    elif grep -qE 'there is no|no GPU of number' "$work/gpu-two.out"; then
        skip "two GPUs: $(tail -n 1 "$work/gpu-two.out")"
    else
        bad "two GPUs: $(tail -n 1 "$work/gpu-two.out")"
    fi
fi

# ---- twice the same bytes; graphs and single launches
same() { # A B WORDS
    if ours limited 20 "$here/towerscope" diff "$1" "$2" --runs "$work/runs" >"$work/diff" 2>&1; then good "$3"; else
        bad "$3"
        head -n 5 "$work/diff"
    fi
}
n=${counts[-1]}
if train first "$devices" --lr 0.01 --steps $cool --towers $n --deterministic &&
    train again "$devices" --lr 0.01 --steps $cool --towers $n --deterministic; then
    same first again "deterministic: twice the same record"
else
    bad "deterministic"
fi
if train eager "$devices" --lr 0.01 --steps $cool --towers $n --deterministic --no-graphs; then
    compare first eager 0 "graphs and single launches"
else
    bad "--no-graphs"
fi

# ---- how fast: towerscope and PyTorch in turns, so that both meet the same GPU
[ -n "$simulated" ] || part=$((limit - 35))
turns() { # towerscope's rates into $work/ours, PyTorch's into $work/torch
    local ours_pid answer batch precision t
    trap '' PIPE # one that has ended is seen by its missing answer
    LD_LIBRARY_PATH=$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$here/throughput" "$devices" "$measured" "$seconds" \
        "$work/state/engines" <"$work/ours.ask" >"$work/ours.say" 2>"$work/ours.err" 7>&- 8<&- &
    ours_pid=$!
    exec 5>"$work/ours.ask" 6<"$work/ours.say"
    if [ -z "$python" ]; then
        skip "PyTorch: not installed here"
    elif read -r -t "$(within 60)" -u 8 answer; then
        echo "$answer" >"$work/torch.version"
    else
        skip "PyTorch: $(tail -n 1 "$work/torch.err")"
        torch_ends
    fi
    ask_ours() { # PRECISION BATCH TOWERS
        [ -n "$ours_pid" ] && (($(left) > 5)) || return
        if echo "$*" >&5 && read -r -t "$(within 60)" -u 6 answer; then echo "$answer" >>"$work/ours"; else
            echo "# $*: no answer" >>"$work/ours"
            kill -9 $ours_pid 2>/dev/null # it would let the next ones wait, too
            wait $ours_pid 2>/dev/null
            bad "throughput: $* gave no answer: $(tail -n 1 "$work/ours.err")"
            ours_pid=
        fi
    }
    ask_torch() { # PRECISION BATCH SETTING
        [ -n "$torch_pid" ] && (($(left) > 5)) || return
        if echo "$*" >&7 && read -r -t "$(within 90)" -u 8 answer; then echo "$answer" >>"$work/torch"; else
            echo "# PyTorch $*: no answer" >>"$work/torch"
            torch_ends # an answer that comes later would be taken for another's
        fi
    }
    one_round() { # BATCH PRECISION SETTING...
        local batch=$1 precision=$2
        shift 2
        for t in "${counts[@]}"; do ask_ours $precision $batch $t; done
        for t in "$@"; do ask_torch $precision $batch $t; done
    }
    # what the goal is about first, compiled too; then the rest, and all again as far as time allows
    for batch in "${batches[@]}"; do
        for precision in bf16 tf32 f32; do one_round $batch $precision graph eager; done
        [ $batch = 8192 ] || continue
        for precision in bf16 tf32 f32; do ask_torch $precision 128 compiled; ask_torch $precision 8192 compiled; done
    done
    for batch in "${batches[@]}"; do
        [ -z "$simulated$([ $batch = 1024 ] && echo 1)" ] || for precision in bf16 tf32 f32; do ask_torch $precision $batch compiled; done
    done
    for batch in "${batches[@]}"; do
        [ -n "$simulated" ] || for precision in bf16 tf32 f32; do one_round $batch $precision graph; done
    done
    exec 5>&- 6<&-
    [ -z "$torch_pid" ] || torch_ends
    [ -z "$ours_pid" ] || ends $ours_pid || bad "throughput: $(grep -m 1 '^#' "$work/ours" || tail -n 1 "$work/ours.err")"
}
ends() { # PID: its status, or 137 when it has not ended after a while
    local start=$SECONDS
    while kill -0 "$1" 2>/dev/null && ((SECONDS - start < 8)); do sleep 0.05; done
    kill -9 "$1" 2>/dev/null
    wait "$1"
}
torch_ends() {
    kill -9 $torch_pid 2>/dev/null
    torch_pid=
    exec 7>&- 8<&-
}
: >"$work/ours"
: >"$work/torch"
turns 2>>"$work/turns.err"
echo
if [ -n "$simulated" ]; then
    echo "Dry run of the table: a simulation's rates mean nothing."
else
    echo "Training steps of cifar10, images/s, the batch in the GPU's memory."
fi
[ ! -e "$work/torch.version" ] ||
    echo "PyTorch $(cat "$work/torch.version"): channels last, autocast in bf16, the faster of two ways to write the normalisation."
echo "In turns on the same device; the best of each one's turns."
echo
echo '| precision | batch | towerscope, 1 tower | 2 towers | 4 towers | PyTorch eager | with a CUDA graph | compiled | × best |'
echo '|---|---|---|---|---|---|---|---|---|'
awk -v batches="${batches[*]}" '
    NF == 4 && $1 !~ /^#/ && $4 > rate[FILENAME, $1, $2, $3] + 0 { rate[FILENAME, $1, $2, $3] = $4 + 0 }
    function show(x) { return x ? sprintf("%.0f", x) : "not measured" }
    function one(file, p, b, what) { return rate[file, p, b, what] + 0 }
    END {
        split("f32 tf32 bf16", precisions, " "); n = split(batches, batch, " ")
        for (p = 1; p <= 3; p++) for (i = 1; i <= n; i++) {
            P = precisions[p]; B = batch[i]; mine = best = 0
            for (t = 1; t <= 4; t *= 2) if (one(ARGV[1], P, B, t) > mine) mine = one(ARGV[1], P, B, t)
            split("eager graph compiled", ways, " ")
            for (w = 1; w <= 3; w++) if (one(ARGV[2], P, B, ways[w]) > best) best = one(ARGV[2], P, B, ways[w])
            printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", P, B, show(one(ARGV[1], P, B, 1)),
                show(one(ARGV[1], P, B, 2)), show(one(ARGV[1], P, B, 4)), show(one(ARGV[2], P, B, "eager")),
                show(one(ARGV[2], P, B, "graph")), show(one(ARGV[2], P, B, "compiled")),
                (mine && best ? sprintf("%.2f", mine / best) : "")
        }
    }' "$work/ours" "$work/torch"
grep -h '^#' "$work/ours" "$work/torch"


# ---- memory errors, with what time is left: libraries are slow under it
part=$limit
if [ -n "$simulated" ]; then
    skip "compute-sanitizer: a simulated GPU is checked by the sanitizers of make test"
elif (($(left) < 15)); then
    skip "compute-sanitizer: no time is left for it"
elif ! command -v compute-sanitizer >/dev/null && [ ! -x /usr/local/cuda/bin/compute-sanitizer ]; then
    skip "compute-sanitizer: not installed here"
else
    sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
    # deterministic: the engines of cuDNN that would only be measured are none of ours to check; and what a library
    # asks of the runtime in vain is not an error
    ours limited 60 "$sanitizer" --tool memcheck --report-api-errors no --error-exitcode 99 "$here/towerscope" \
        train checked --runs "$work/runs" --devices "$devices" --data generated "${model[@]}" --batch 16 --towers 2 --steps 2 \
        --deterministic --no-graphs >"$work/sanitizer" 2>&1
    rc=$?
    if [ $rc = 0 ] && grep -q 'ERROR SUMMARY: 0 errors' "$work/sanitizer"; then
        good "compute-sanitizer: no errors in two steps"
    elif [ $rc = 99 ]; then
        bad "compute-sanitizer: $(grep -m 1 '=========' "$work/sanitizer")"
    else
        skip "compute-sanitizer refuses here: $([ $rc != 124 ] || echo 'too slow; ')$(
            grep -m 1 -iE 'error|not supported|fail' "$work/sanitizer" || echo "exit $rc")"
    fi
fi

echo
echo "== $((SECONDS - begun)) s on $devices"
printf '%s\n' "${results[@]}"
exit $failed
