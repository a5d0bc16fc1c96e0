# A run that changes its towers and saves all the time is killed at random moments, again and again, and goes on each
# time; in the end it has the same bytes as one that was never touched. To be sourced.

# kill_loop ROUNDS: prints what is wrong, nothing when all is well. Works in the current folder.
kill_loop() {
    local rounds=$1 i wait pid newest out last=-1 step how told
    "$TOWERSCOPE" data make few --images 200 >few.out 2>&1 || { cat few.out && return; }
    # towers 1 to 5 each fifth step, saves between those that come by themselves
    awk 'BEGIN { for (i = 1; i <= 40000; i++) { if (i % 5 == 0) print "@" i " towers " (i / 5 * (i / 5 + 3) / 2) % 5 + 1
                                               if (i % 11 == 0) print "@" i " save" } }' >commands
    local options=(--data few --model softmax --lr 0.01 --momentum 0.9 --batch 16 --eval-every 0
        --log-every 100000000 --record-every 1 --script commands)
    for ((i = 0; i < rounds; i++)); do
        how=()
        [ -d runs/killed ] && how=(--resume)
        "$TOWERSCOPE" train killed "${options[@]}" --checkpoint-every 2 --steps 100000000 "${how[@]}" >killed.out 2>killed.err </dev/null &
        pid=$!
        # a random moment is the matter here: of the beginning, or after a save
        for ((wait = 0; i % 3 && wait < 5000; wait++)); do
            grep -qs '^....-..-.. .* saved ' killed.out && break
            sleep 0.02
        done
        sleep "0.$(printf %03d $((RANDOM % 250)))"
        kill -9 $pid 2>/dev/null || { echo "round $i: it ended by itself: $(cat killed.err)" && return; }
        wait $pid 2>/dev/null
        sed -i '/commands: the run goes on after step .*; left out, as behind it: /d' killed.err
        [ ! -s killed.err ] || echo "round $i: $(cat killed.err)"
        newest=$(find runs/killed/checkpoints -name 'step-*.safetensors' 2>/dev/null | sort | tail -n 1)
        [ -n "$newest" ] || continue
        out=$("$TOWERSCOPE" eval "$newest" 2>&1) || { echo "round $i: $out" && return; }
        step=$(sed -n '1s/.* after \([0-9]*\) steps.*/\1/p' <<<"$out")
        [ "${step:--2}" -ge "$last" ] || echo "round $i: went back from step $last to $step"
        # what the record tells of as saved is there
        told=$(grep -a '"event":"checkpoint"' runs/killed/events.jsonl | tail -n 1 | grep -o '"step":[0-9]*' | cut -d: -f2)
        [ "$step" -ge "${told:-0}" ] || echo "round $i: saved at step $told, but the newest is of step $step"
        last=$step
    done
    [ "$last" -gt 0 ] || { echo "no checkpoint in $rounds rounds: nothing was tried" && return; }
    local end=$((last + 5)) file
    file=checkpoints/step-$(printf %08d $end).safetensors
    # the commands go on after the end, which is told by exit code 3
    out=$("$TOWERSCOPE" train killed "${options[@]}" --resume --steps $end --checkpoint-every 0 2>&1) || [ $? = 3 ] || echo "the last resume: $out"
    out=$("$TOWERSCOPE" train unkilled "${options[@]}" --steps $end --checkpoint-every 0 2>&1) || [ $? = 3 ] || echo "the run without kills: $out"
    cmp runs/killed/$file runs/unkilled/$file 2>&1
    find runs/killed/checkpoints -name '*.tmp' | grep . && echo "a piece of a file is left"
    # the record: numbers without holes over all the kills, and each step of the way that led here, once, in order:
    # a start drops what lies beyond the step it goes on from, and must find all steps up to that one
    awk -v end=$end '
        function number(name) { return match($0, "\"" name "\":[0-9]+") ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0 : 0 }
        number("seq") != NR { print "line " NR " of the record is number " number("seq"); exit }
        /^{"event":"run_start"/ {
            from = number("resumed_from")
            if (from > at) { print "line " NR ": goes on from step " from " and the record ended at " at; exit }
            at = from
        }
        /^{"event":"step"/ {
            if (number("step") != at + 1) { print "line " NR ": step " number("step") " after step " at; exit }
            at++
        }
        END { if (at != end) print "the record ends at step " at ", not " end }' runs/killed/events.jsonl
    echo "$rounds kills, $last steps" >kills
}
