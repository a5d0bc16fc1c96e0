#!/usr/bin/env bash
# What check.sh needs on another machine, in one file: bundle.sh BUILD OUT.tar.gz
#
# The program, its plugins, and the shared libraries that a machine with a GPU may lack; NVIDIA's large ones (cuDNN,
# cuBLAS, NCCL) are that machine's own, and are listed in the file `libraries`.
set -eu
build=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
to=$work/towerscope-gpu
mkdir -p "$to/lib"
cp "$build/towerscope" "$build/tests/gpu/operations" "$build/tests/gpu/throughput" "$to/"
cp -L "$build/backend_cuda.so" "$to/"
[ ! -e "$build/sim/backend_sim.so" ] || cp "$build/sim/backend_sim.so" "$to/"
cp "$here/check.sh" "$here/small.ini" "$here/torch_rate.py" "$here/../bench/torch_step.py" "$to/"
needed() { ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u; }
: >"$to/libraries"
while read -r name path; do
    case $name in
    libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | ld-linux*) ;; # the system's
    libcudart.so.*) cp -L "$path" "$to/lib/$name" ;;
    libcu* | libnccl* | libnv*) ;; # large: found there
    *) cp -L "$path" "$to/lib/$name" ;;
    esac
done < <(needed "$to/towerscope" "$to/operations" "$to/throughput" "$to"/backend_*.so)
# by the names that the plugin asks for, whatever this machine has
${READELF:-readelf} -d "$to/backend_cuda.so" | sed -n 's/.*NEEDED.*\[\(lib\(cu\|nccl\)[^]]*\)\]/\1/p' >"$to/libraries"
for file in "$to/towerscope" "$to/operations" "$to/throughput" "$to"/backend_*.so; do strip --strip-debug "$file"; done
mkdir -p "$(dirname "$out")"
tar -C "$work" -czf "$out.tmp" towerscope-gpu
mv "$out.tmp" "$out"
size=$(stat -c %s "$out")
echo "$out: $((size / 1000000)) MB"
((size <= 60000000)) || { echo "that is more than 60 MB" >&2; exit 1; }
