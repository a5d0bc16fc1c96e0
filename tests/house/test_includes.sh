#!/usr/bin/env bash
# Who may include whom (ARCHITECTURE.md, "Folders and arrows"), from the compiler's own dependency output; and
# every header compiles alone. test-skip-under: thread, address (the sources are the same)
. "$SOURCE/tests/support/test.sh"
cd "$SOURCE" || exit 1

# part -> parts it may include, besides its own; "*" is everything
plugin=$BUILD/../cuda # what the GPU plugin is made of, where its toolkit is
wrong=$(find "$BUILD" "$plugin" -name '*.d' ! -path '*/tests/*' -exec cat {} + 2>/dev/null | awk '
function part(path,   p) { # the part of the house a file belongs to
    split(path, p, "/")
    if (p[1] == "engine" || (p[1] == "kernels" && p[2] ~ /^(ref|cpu|cuda)$/)) return p[1] "/" p[2]
    return p[1]
}
BEGIN {
    may["cli"] = "*"
    may["tui"] = "engine/wire engine/base"
    may["engine/hub"] = "engine/wire engine/base"
    may["engine/train"] = "engine/model datasets kernels engine/wire engine/base"
    may["engine/model"] = "kernels engine/base"
    may["engine/wire"] = "engine/base"
    may["engine/base"] = ""
    may["datasets"] = "engine/base"
    may["kernels/ref"] = may["kernels/cpu"] = may["kernels/cuda"] = "kernels"
    may["kernels"] = "kernels/ref kernels/cpu kernels/cuda" # the registry opens every device
}
/^[^:]*:$/ { next }    # the phony rules of -MP
/:/ { source = "" }    # a rule begins
{
    for (i = 1; i <= NF; i++) {
        f = $i
        if (f !~ /^[a-z]+\/.*\.(c|cu|h)$/ || f ~ /^(build|tests)\//) continue
        if (source == "") { source = f; mine = part(f); continue }
        # the two headers of facts that everyone may know
        if (f !~ /\.h$/ || f == "kernels/status.h" || f == "kernels/tensor.h") continue
        theirs = part(f)
        if (theirs == mine || may[mine] == "*") continue
        if (index(" " may[mine] " ", " " theirs " ") == 0) print source " includes " f ": not an allowed arrow"
    }
}' | sort -u)
[ -z "$wrong" ] || fail "$wrong"

# Outside headers with one home each.
only() { # HEADER-PATTERN HOME-PATTERN
    local hits
    hits=$(grep -rlE "#include <($1)" --include='*.[ch]' --include='*.cu' cli datasets engine kernels tui 2>/dev/null | grep -vE "^($2)")
    [ -z "$hits" ] || fail "only $2 may include <$1>: $hits"
}
only 'ncurses|curses|term\.h' 'tui/term\.c'
only 'cuda|cudnn|cublas|nccl' 'kernels/cuda/'
only 'ini\.h' 'engine/base/'
only 'zlib\.h' 'datasets/'
only 'oneapi/|dnnl' 'kernels/cpu/'
only 'jansson' 'engine/wire/|engine/hub/'
only 'omp\.h' 'kernels/cpu/'
only 'cmocka|vterm' 'tests/'

# Every header compiles alone; those of kernels/cuda where the toolkit's are.
toolkit=${CUDA_HOME:-/usr/local/cuda}
alone() {
    [[ $1 != kernels/cuda/* || -e $toolkit/include/cuda_runtime_api.h ]] || return 0
    ${CC:-cc} -std=c11 -D_GNU_SOURCE -DREF_DOUBLE=0 -DISA_plain=1 -DISA_NAME=plain -DTOWERSCOPE_VERSION='""' \
        -Wall -Wextra -Werror -I. -I"$BUILD/gen" -I"$toolkit/include" -fsyntax-only -x c "$1" ||
        echo "$1 does not compile alone"
}
export -f alone
export toolkit
wrong=$(find cli datasets engine kernels tui tests -name '*.h' ! -path 'tests/cudasim/*' | sort |
    xargs -P "$(nproc)" -I{} bash -c 'alone {}' 2>&1)
[ -z "$wrong" ] || fail "$wrong"
finish
