#!/usr/bin/env bash
# Who may include whom (ARCHITECTURE.md, "Arrows"), from the compiler's own dependency output; and every header
# compiles alone.
set -u
cd "$SOURCE"
bad=0
complain() { echo "$*"; bad=1; }

# folder of a source -> folders it may include, besides its own
allowed() {
    case $1 in
    cli/*) echo '.*' ;;
    tui/*) echo 'engine/wire|engine/base' ;;
    engine/hub/*) echo 'engine/wire|engine/base' ;;
    engine/train/*) echo 'engine/model|engine/collective|datasets|kernels|engine/wire|engine/base' ;;
    engine/collective/*) echo 'kernels|engine/base' ;;
    engine/model/*) echo 'kernels|engine/base' ;;
    engine/wire/*) echo 'engine/base' ;;
    engine/base/*) echo 'none' ;;
    datasets/*) echo 'engine/base' ;;
    kernels/ref/* | kernels/cpu/* | kernels/cuda/*) echo 'kernels' ;;
    kernels/*) echo 'kernels(/(ref|cpu|cuda))?' ;; # the registry opens every device
    *) echo 'none' ;;
    esac
}
own() { # the part a file belongs to: nested folders of a part count as the part
    case $1 in
    engine/*) echo "$1" | cut -d/ -f1-2 ;;
    kernels/ref/* | kernels/cpu/* | kernels/cuda/*) echo "$1" | cut -d/ -f1-2 ;;
    *) echo "${1%%/*}" ;;
    esac
}

while read -r d; do
    # "object: source header header \" with continuations; -MP adds phony targets, which end in a colon
    files=$(sed -e 's/\\$//' "$d" | tr ' ' '\n' | grep -E '^[a-z]+/.*\.(c|h|cu)$')
    source=$(grep -E '\.(c|cu)$' <<<"$files" | head -n 1)
    case $source in '' | tests/* | build/*) continue ;; esac
    [ -e "$source" ] || continue
    rule=$(allowed "$source") mine=$(own "$source")
    for h in $(grep '\.h$' <<<"$files" | sort -u); do
        case $h in build/*) continue ;; esac
        theirs=$(dirname "$h")
        [ "$(own "$h")" = "$mine" ] && continue
        # the two headers of facts that everyone may know
        case $h in kernels/status.h | kernels/tensor.h) continue ;; esac
        grep -qxE "($rule)" <<<"$theirs" || complain "$source includes $h: not an allowed arrow"
    done
done < <(find "$BUILD" -name '*.d' ! -path '*/tests/*' | sort)

# Outside headers with one home each.
only() { # HEADER-PATTERN HOME-PATTERN
    local hits
    hits=$(grep -rlE "#include <($1)" --include='*.[ch]' --include='*.cu' cli datasets engine kernels tui 2>/dev/null | grep -vE "^($2)")
    [ -z "$hits" ] || complain "only $2 may include <$1>: $hits"
}
only 'ncurses|curses|term\.h' 'tui/term\.c'
only 'cuda|cudnn|cublas|nccl' 'kernels/cuda/'
only 'mpi\.h' 'engine/collective/'
only 'oneapi/|dnnl' 'kernels/cpu/'
only 'jansson' 'engine/wire/|engine/hub/'
only 'omp\.h' 'kernels/cpu/'
only 'cmocka|vterm' 'tests/'

# Every header compiles alone.
while read -r h; do
    ${CC:-cc} -std=c11 -D_GNU_SOURCE -DREF_DOUBLE=0 -DISA_plain=1 -DISA_NAME=plain -DTOWERSCOPE_VERSION='""' -Wall -Wextra -Werror \
        -I. -I"$BUILD/gen" -fsyntax-only -x c "$h" || complain "$h does not compile alone"
done < <(find cli datasets engine kernels tui tests -name "*.h" | sort)
exit $bad
