#!/usr/bin/env bash
# The tables of PROTOCOL.md are those of the program.
set -u
cd "$TEST_TMP"
"$TOWERSCOPE" protocol >made || exit 1
sed '1,/^<!-- made by: towerscope protocol -->$/d; /^<!-- end -->$/,$d' "$SOURCE/engine/wire/PROTOCOL.md" >kept
[ -s kept ] || { echo "no tables in PROTOCOL.md"; exit 1; }
cmp -s made kept || { diff made kept | head -20; echo "engine/wire/PROTOCOL.md is stale: make protocol"; exit 1; }
for event in run_start step losses hello gap run_end; do grep -q "^### $event" made || { echo "no $event"; exit 1; }; done
