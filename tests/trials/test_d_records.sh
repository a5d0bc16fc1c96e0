#!/usr/bin/env bash
# test-skip-under: thread (records are read by one thread)
# Records as disks, editors and strangers leave them: lines that are no events, values out of range, other encodings,
# what is no file. They are replayed, listed and compared as far as they can be read, and it is told when they can't.
. "$SOURCE/tests/trials/fixtures.sh"
make_idx data 50
"$TOWERSCOPE" train r --data data --model softmax --batch 10 --steps 60 --eval-every 20 --record-every 1 </dev/null >out 2>&1 ||
    fail "a run: $(cat out)"
cp -a runs kept
record=runs/r/events.jsonl
again() {
    rm -rf runs
    cp -a kept runs
}
# replay, ls and diff end by themselves, without a signal; rc_...: their exit codes
look() { # WHAT
    local command
    for command in 'replay r --at 50 --svg screen.svg' 'ls' 'diff r r'; do
        timeout 200 "$TOWERSCOPE" $command </dev/null >"${command%% *}.out" 2>"${command%% *}.err"
        declare -g "rc_${command%% *}=$?"
    done
    case "$rc_replay $rc_ls $rc_diff" in [01]' '[01]' '[01]) ;; *) fail "$1: exits $rc_replay $rc_ls $rc_diff" ;; esac
}
edit() { sed -i "$1" $record; }

again
look control
[ "$rc_replay $rc_ls $rc_diff" = '0 0 0' ] && grep -q 'nothing differs in [0-9]* events$' diff.out || fail "control: $(cat diff.out)"
for change in 's/"time":[0-9.]*/"time":1e308/' '1~3s/"time":1/"time":-/' 's/"step":[0-9]*/"step":9223372036854775807/' \
    's/"step":[0-9]*/"step":-5/' 's/"towers":2/"towers":1000000000/' 's/$/\r/' 's/softmax/so\\u0000ft\\u001b[31mmax/'; do
    again
    edit "$change"
    look "$change"
    [ "$rc_ls" = 0 ] && grep -q '^r ' ls.out || fail "$change: $(cat ls.out ls.err)"
    grep -q $'\x1b' ls.out && fail "$change: an escape sequence"
done

# lines that can't be read: what is compared is said, and it is not all
again
edit 's/"loss":[0-9.]*/"loss":NaN/'
look 'no JSON'
[ "$rc_diff" = 1 ] && grep -q "r: [0-9]* lines can't be read" diff.err && grep -q 'events that can be read' diff.out ||
    fail "no JSON: exit $rc_diff: $(cat diff.out diff.err)"

# a run that can't be read hides no other
for what in device pipe folder; do
    again
    cp -a runs/r runs/odd
    rm runs/odd/events.jsonl
    case $what in
    device) ln -s /dev/zero runs/odd/events.jsonl ;;
    pipe) mkfifo runs/odd/events.jsonl ;;
    folder) mkdir runs/odd/events.jsonl ;;
    esac
    look $what
    [ "$rc_ls" = 1 ] && grep -q '^r .* ended ' ls.out && grep -q 'odd/events.jsonl' ls.err || fail "$what: exit $rc_ls: $(cat ls.out ls.err)"
done

# nor does one that only its owner may enter, or where live runs are noted
again
: >state.file
XDG_STATE_HOME=$PWD/state.file look 'no folder of live runs'
[ "$rc_ls" = 1 ] && grep -q '^r .* ended ' ls.out && grep -q 'state.file.*in other folders is not listed' ls.err ||
    fail "no folder of live runs: exit $rc_ls: $(cat ls.out ls.err)"
mkdir runs/private
chmod 000 runs/private
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --bounding-set=-dac_override,-dac_read_search)
if "${as[@]}" true 2>/dev/null && ! "${as[@]}" ls runs/private >/dev/null 2>&1; then
    "${as[@]}" "$TOWERSCOPE" ls </dev/null >ls.out 2>ls.err && fail "a run that may not be read: exit 0"
    grep -q '^r .* ended ' ls.out && grep -q 'runs/private: Permission denied' ls.err || fail "a run that may not be read: $(cat ls.out ls.err)"
fi
finish
