#!/usr/bin/env bash
# Text that does not belong in a source file: unsafe functions, left-overs.
. "$SOURCE/tests/support/test.sh"
cd "$SOURCE" || exit 1
forbid() { # PATTERN WHY
    local hits
    hits=$(grep -rnE "$1" --include='*.[ch]' cli datasets engine kernels tui 2>/dev/null)
    [ -z "$hits" ] || fail "$2: $hits"
}
forbid '\b(strcpy|strcat|sprintf|vsprintf|gets|strtok)\(' 'functions that can overrun or keep hidden state'
forbid '\b(TODO|FIXME|XXX)\b' 'left-overs'
forbid '	' 'tabs (four spaces here)'
# Only cli/ ends the process and writes to the terminal's streams.
hits=$(grep -rnE '\b(exit|printf|puts|perror)\(' --include='*.[ch]' datasets engine kernels tui 2>/dev/null | grep -vE '_exit\(|snprintf|fprintf|//|\* ')
[ -z "$hits" ] || fail "only cli/ prints and exits: $hits"
finish
