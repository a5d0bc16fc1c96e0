#!/usr/bin/env bash
# The model files as a C table: embed.sh FILE.ini ... > models.c
set -eu
echo '#include "engine/model/builtin.h"'
echo 'const struct model_builtin model_builtins[] = {'
for file in "$@"; do
    printf '    {"%s",\n' "$(basename "$file" .ini)"
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/     "/' -e 's/$/\\n"/' "$file"
    echo '    },'
done
echo '    {0, 0}};'
