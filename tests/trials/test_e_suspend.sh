#!/usr/bin/env bash
# E5: ^Z, fg, STOP and CONT from outside, and attaching again at another size, in a shell in tmux and in screen.
# test-timeout: 300, test-skip-under: thread (it holds signals back)
. "$SOURCE/tests/support/test.sh"
command -v tmux >/dev/null || { echo "tmux is not installed"; exit 77; }
socket=$TEST_TMP/tmux
clean_up() { tmux -S "$socket" kill-server 2>/dev/null; }
t() { tmux -S "$socket" "$@"; }
shot() { t capture-pane -p -t shop; }
keys() { t send-keys -t shop "$@"; }
has() { shot | grep -q -- "$1"; } # PATTERN
has_no() { ! has "$1"; }
# Wait for a line of the screen that matches.
shows() { # PATTERN WHAT
    await has "$1" && return
    fail "$2: the screen is"
    shot
}
step() { "$TOWERSCOPE" ctl shop status --json | sed 's/.*"step":\([0-9]*\).*/\1/'; }
goes_on() { # WHAT
    first=$(step)
    await beyond || fail "$1: the run stands at step $first"
}
beyond() { [ "$(step)" -gt "$first" ]; }
modes() { # FILE: what stty says of the pane's terminal, without its size
    keys "stty -a | grep -v rows >$TEST_TMP/$1; echo sa''id-$1" Enter # typed otherwise than it is said: lines wrap
    shows "^said-$1" "stty"
}

"$TOWERSCOPE" run shop --detach --runs runs --data generated --model softmax --towers 4 --batch 32 --lr 0.01 \
    --eval-every 0 --checkpoint-every 0 >/dev/null || fatal 'no run'
t -f /dev/null new-session -d -s shop -x 120 -y 40 "env PS1='READY> ' bash --norc --noprofile" || fatal "no tmux"
shows '^READY>' 'the shell'
modes before
grep -q ' icanon' before && grep -q ' echo ' before || fail "the control: the shell's terminal has icanon and echo"

keys clear Enter
keys "\"$TOWERSCOPE\" attach shop" Enter
shows 'gradient norm' 'the console at 120x40'
console=$(t display-message -p -t shop '#{pane_pid}') # or what it started, and so on
while child=$(pgrep -P "$console"); do console=$child; done
stty -a -F "$(t display-message -p -t shop '#{pane_tty}')" 2>/dev/null >during
grep -q ' -icanon' during || fail "the control: the console's own modes differ"

keys C-z
shows 'Stopped' '^Z'
modes stopped
cmp -s before stopped || fail "after ^Z stty -a is another: $(diff before stopped)"
[ "$(t display-message -p -t shop '#{alternate_on}')" = 0 ] || fail "after ^Z the alternate screen stays"
[ "$(t display-message -p -t shop '#{cursor_flag}')" = 1 ] || fail "after ^Z the cursor is hidden"
goes_on 'while the console is stopped'

keys fg Enter
shows 'gradient norm' 'fg'
shows '1 Towers' 'fg'
shot | grep -q 'Stopped' && fail "after fg old text stays between the new"

kill -STOP "$console"
goes_on 'while the console is stopped from outside'
kill -CONT "$console" # in the background now: its next frame stops it again
keys "" fg Enter
shows 'gradient norm' 'fg after STOP and CONT'
keys 7
shows 'what happened' 'STOP and CONT'
keys 1
shows 'gradient norm' 'the first screen again'

# Attached again at another size: tmux makes the window as large as the client that looks at it.
t resize-window -t shop -x 60 -y 20
shows 'loss' '60x20'
await has_no 'gradient norm'
shot >small
[ "$(wc -l <small)" -le 20 ] || fail "more than 20 rows at 60x20"
grep -q 'gradient norm' small && fail "remains of the larger screen at 60x20"
[ "$(grep -c 'average' small)" = 1 ] || fail "the average stands once at 60x20"
t resize-window -t shop -x 120 -y 40
shows 'gradient norm' 'back at 120x40'

# Rubbish written over it is gone after ^L.
printf '\033[5;5Hrubbish-of-another' >"$(t display-message -p -t shop '#{pane_tty}')"
shows 'rubbish-of-another' 'the control: rubbish is seen'
keys C-l
await has_no rubbish || fail '^L leaves rubbish'

keys q
shows 'goes on' 'q'
modes after
cmp -s before after || fail "after q stty -a is another: $(diff before after)"
[ "$(t display-message -p -t shop '#{cursor_flag}')" = 1 ] || fail "after q the cursor is hidden"
goes_on 'after q'
t kill-server
socket=$TEST_TMP/tmux-of-screen # a server that is asked while it ends takes no session

if command -v screen >/dev/null; then
    export SCREENDIR=$TEST_TMP/screens
    mkdir -p -m 700 "$SCREENDIR"
    # screen needs a terminal of its own: a pane of tmux.
    t -f /dev/null new-session -d -s shop -x 100 -y 30 \
        "screen -U -c /dev/null -S shop env PS1='READY> ' bash --norc --noprofile"
    shows '^READY>' 'the shell in screen'
    modes before
    keys "\"$TOWERSCOPE\" attach shop" Enter
    shows 'cross-entropy' 'the console in screen'
    keys C-z
    shows 'Stopped' '^Z in screen'
    modes stopped
    cmp -s before stopped || fail "in screen, after ^Z stty -a is another"
    keys fg Enter
    shows 'cross-entropy' 'fg in screen'
    keys q
    shows 'goes on' 'q in screen'
    modes after
    cmp -s before after || fail "in screen, after q stty -a is another"
    goes_on 'after q in screen'
    screen -S shop -X quit >/dev/null
fi
finish
