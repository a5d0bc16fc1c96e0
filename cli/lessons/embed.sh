#!/usr/bin/env bash
# The lessons as a C table, in the order of their numbers: embed.sh FILE.lesson ... > lessons.c
set -eu
echo '#include "cli/lesson.h"'
echo 'const struct lesson_source lesson_sources[] = {'
for file in "$@"; do
    printf '    {"%s",\n' "$(basename "$file" .lesson | sed 's/^[0-9]*-//')"
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/     "/' -e 's/$/\\n"/' "$file"
    echo '    },'
done
echo '    {0, 0}};'
