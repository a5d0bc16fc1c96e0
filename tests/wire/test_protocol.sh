#!/usr/bin/env bash
# The tables of PROTOCOL.md are those of the program.
. "$SOURCE/tests/support/test.sh"
"$TOWERSCOPE" protocol >made || fatal 'no tables'
sed '1,/^<!-- made by: towerscope protocol -->$/d; /^<!-- end -->$/,$d' "$SOURCE/engine/wire/PROTOCOL.md" >kept
[ -s kept ] || fatal "no tables in PROTOCOL.md"
cmp -s made kept || fail "engine/wire/PROTOCOL.md is stale, make protocol: $(diff made kept | head -20)"
for event in run_start step losses hello gap run_end; do grep -q "^### $event" made || fail "no $event"; done
finish
