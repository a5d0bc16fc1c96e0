# A run that saves at each step is killed at random moments, again and again, and goes on each time. To be sourced.

# kill_loop ROUNDS: prints what is wrong, nothing when all is well. Works in the current folder.
kill_loop() {
    local rounds=$1 i wait pid newest out last=-1 step how
    "$TOWERSCOPE" data make few --images 200 >few.out 2>&1 || { cat few.out && return; }
    local options=(--data few --model softmax --lr 0.01 --batch 16 --steps 100000000 --checkpoint-every 1 --eval-every 0
        --log-every 100000000)
    for ((i = 0; i < rounds; i++)); do
        how=()
        [ -d runs/killed ] && how=(--resume)
        "$TOWERSCOPE" train killed "${options[@]}" "${how[@]}" >killed.out 2>killed.err </dev/null &
        pid=$!
        # a random moment is the matter here: of the beginning, or after a save
        for ((wait = 0; i % 3 && wait < 500; wait++)); do
            grep -qs '^....-..-.. .* saved ' killed.out && break
            sleep 0.02
        done
        sleep "0.$(printf %03d $((RANDOM % 250)))"
        kill -9 $pid 2>/dev/null || { echo "round $i: it ended by itself: $(cat killed.err)" && return; }
        wait $pid 2>/dev/null
        [ ! -s killed.err ] || echo "round $i: $(cat killed.err)"
        newest=$(find runs/killed/checkpoints -name 'step-*.safetensors' 2>/dev/null | sort | tail -n 1)
        [ -n "$newest" ] || continue
        out=$("$TOWERSCOPE" eval "$newest" 2>&1) || { echo "round $i: $out" && return; }
        step=$(sed -n '1s/.* after \([0-9]*\) steps.*/\1/p' <<<"$out")
        [ "${step:--2}" -ge "$last" ] || echo "round $i: went back from step $last to $step"
        last=$step
    done
    [ "$last" -gt 0 ] || { echo "no checkpoint in $rounds rounds: nothing was tried" && return; }
    out=$("$TOWERSCOPE" train killed --resume --steps $((last + 3)) 2>&1) || echo "the last resume: $out"
    [ -f "runs/killed/checkpoints/step-$(printf %08d $((last + 3))).safetensors" ] || echo "the last resume saved nothing"
    find runs/killed/checkpoints -name '*.tmp' | grep . && echo "a piece of a file is left"
    # the record: numbers without holes over all the kills, and each step of the way that led here
    grep -o '"seq":[0-9]*' runs/killed/events.jsonl | cut -d: -f2 | awk '$1 != NR { print "line " NR " of the record is number " $1; exit }'
}
