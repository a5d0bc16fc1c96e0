#!/usr/bin/env bash
# Why a GPU can't be used, in the words of `doctor` and of the refusal; and a run without one is as ever, plugin or not.
. "$SOURCE/tests/support/test.sh"
cc=${CC:-cc}

refused() { # WORDS: `--devices cuda:0` is refused with them
    local out rc
    out=$("$TOWERSCOPE" train x --devices cuda:0 --data generated --model softmax --steps 1 --runs runs 2>&1)
    rc=$?
    [ $rc != 0 ] || fail "cuda:0 was not refused"
    [[ $out == *"device cuda:0 cannot be used: "*"$1"* ]] || fail "expected \"$1\" in: $out"
    [ ! -e runs/x ] || fail "a refused run left a folder"
}
told() { # WORDS: `doctor` says them of cuda
    local line
    line=$("$TOWERSCOPE" doctor | grep -E '^  cuda ')
    [[ $line == *"not usable: "*"$1"* ]] || fail "expected \"$1\" in: $line"
}

# no plugin
mkdir none
export TOWERSCOPE_PLUGINS=$TEST_TMP/none
refused "there is no backend_cuda.so in TOWERSCOPE_PLUGINS=$TEST_TMP/none"
[ -e /dev/nvidiactl ] || told "there is no backend_cuda.so"

make_plugin() { # FOLDER SOURCE [FLAGS...]
    mkdir "$1"
    echo "$2" >"$1/plugin.c"
    "$cc" -std=c11 -I"$SOURCE" -shared -fPIC -o "$1/backend_cuda.so" "$1/plugin.c" "${@:3}" || fail "cc"
    export TOWERSCOPE_PLUGINS=$TEST_TMP/$1
}

# a library that it needs is missing: which
mkdir libraries
echo 'int gone(void) { return 1; }' | "$cc" -shared -fPIC -o libraries/libgone.so.7 -Wl,-soname,libgone.so.7 -x c -
make_plugin missing 'int gone(void); int f(void) { return gone(); }' "$PWD/libraries/libgone.so.7"
rm libraries/libgone.so.7
refused "library missing: libgone.so.7"

# not a plugin, one of another version, not a library at all
make_plugin empty 'int nothing;'
refused "is not a plugin of this program"
make_plugin old '#include "kernels/plugin.h"
static const struct device_ops ops = {.api = 999};
const struct device_ops *towerscope_plugin(void) { return &ops; }'
refused "speaks version 999 of the device table"
mkdir broken
echo nonsense >broken/backend_cuda.so
TOWERSCOPE_PLUGINS=$TEST_TMP/broken refused "does not load"

# the real one
[ -e "$BUILD/backend_cuda.so" ] || { echo "no CUDA toolkit was found: the plugin itself was not tried"; exit 77; }
export TOWERSCOPE_PLUGINS=$BUILD
if [ -e /dev/nvidiactl ]; then
    echo "there is a driver here: that it is missing was not tried"
    exit 77
fi
told "no NVIDIA driver on this machine"
refused "no NVIDIA driver on this machine"
refused "no driver: the CUDA runtime"
with=$("$TOWERSCOPE" train with --data generated --model softmax --steps 3 --seed 7 --runs runs) || fail "a run beside the plugin"
TOWERSCOPE_PLUGINS=$TEST_TMP/none "$TOWERSCOPE" train without --data generated --model softmax --steps 3 --seed 7 \
    --runs runs >/dev/null || fail "a run without the plugin"
"$TOWERSCOPE" diff with without --runs runs || fail "the plugin changed a run: $with"
finish
