#!/usr/bin/env bash
# What strangers bring: names, notes, records, models and folders that are made to do harm (SECURITY.md). Who may talk to
# an engine: test_f_daemon.c; data sets: test_a_datasets.sh; checkpoints: test_b_checkpoints.sh, test_b_damage.c.
. "$SOURCE/tests/trials/fixtures.sh"
export TOWERSCOPE_SAVE_SECONDS=0 # a last state that can't be saved: not waited for
make_idx data 50
small=(--data data --model softmax --batch 10 --eval-every 0)
harmless() { # FILE: nothing in it that a terminal obeys
    ! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]' "$1"
}

# ---- names of runs
escape=$'a\033]0;owned\007b' long=$(printf 'a%.0s' {1..300})
for name in "$escape" ../stray a/b . .. .hidden -- "$long" 'na me' $'two\nlines' ''; do
    "$TOWERSCOPE" train "$name" "${small[@]}" --steps 1 >out 2>&1
    rc=$?
    [ $rc != 0 ] && [ $rc -lt 124 ] && harmless out || fail "the name $(printf %q "${name:0:40}"): exit $rc: $(cat -v out)"
    "$TOWERSCOPE" ctl "$name" status >out 2>&1
    rc=$?
    [ $rc != 0 ] && [ $rc -lt 124 ] && harmless out || fail "ctl $(printf %q "${name:0:40}"): exit $rc: $(cat -v out)"
done
[ ! -e runs ] && [ ! -e ../stray ] || fail "a name that was refused left something: $(ls -R runs)"
for word in "$escape" "--$escape"; do
    "$TOWERSCOPE" "$word" >out 2>&1
    harmless out || fail "towerscope $(printf %q "$word"): $(cat -v out)"
done
for command in 'data check' 'eval' 'replay' 'attach' 'lesson' 'train --data' 'train --model' 'train --script' 'train --lr'; do
    "$TOWERSCOPE" $command "$escape" >out 2>&1 </dev/null
    harmless out || fail "$command $(printf %q "$escape"): $(cat -v out)"
done

# ---- a note, as long as it may be and with everything in it
printf '@1 note %s\n' $'\033[31m red \302\233 \342\200\256 '"${long:0:150}" >script
"$TOWERSCOPE" train noted "${small[@]}" --steps 2 --script script >out 2>&1 || fail "a hostile note: $(cat -v out)"
harmless out && harmless runs/noted/events.jsonl || fail "a note is shown as it came: $(cat -v out | head -n 5)"
printf '@1 note %s\n' "$long$long" >script
"$TOWERSCOPE" train notes "${small[@]}" --steps 2 --script script >out 2>&1 && fail "a note of 600 characters is taken"
[ ! -e runs/notes ] || fail "a script that was refused left a run"

# ---- a record from a stranger
mkdir -p runs/stranger
cat >runs/stranger/events.jsonl <<'END'
{"event":"run_start","seq":1,"time":1.0,"run":"\u001b]0;owned\u0007../../x","model":"\u001b[31mred","parameters":10,"data":{"name":"\u009b31m","train":10,"test":10,"classes":2,"shape":[2,2,1]},"batch":4,"batch_rule":"global","towers":1,"devices":[{"device":"\u001b[2J","name":"\u001bc"}],"seed":1,"lr":0.1,"momentum":0,"weight_decay":0}
{"event":"note","seq":2,"time":2.0,"step":0,"text":"\u001b[31m\u0007 \u202e gnp"}
{"event":"alarm","seq":3,"time":2.0,"level":"\u001bx","step":0,"tensor":"\u001bP1$r","text":"\u001b]52;c;AAAA\u0007"}
{"event":"checkpoint","seq":4,"time":2.0,"step":0,"path":"../../../etc/passwd\u001b[6n","bytes":1,"seconds":1}
{"event":"run_end","seq":5,"time":3.0,"step":0,"reason":"\u001b[5n","text":"\u001b[6n"}
END
"$TOWERSCOPE" ls >out 2>&1
grep -q stranger out && harmless out || fail "ls: $(cat -v out)"
for screen in towers log devices layers; do
    "$TOWERSCOPE" replay stranger --at 0 --screen $screen --svg screen.svg >out 2>&1 || fail "replay: $(cat -v out)"
    harmless screen.svg && harmless out || fail "the screen $screen shows what it was told to"
done
"$TOWERSCOPE" diff stranger noted >out 2>&1
harmless out || fail "diff: $(cat -v out)"

# ---- models from a stranger: refused in words, whatever they ask for
model() { # NAME TEXT
    printf "$2" >"$1.ini"
    (
        case $BUILD in *asan | *tsan) ;; *) ulimit -v 8000000 ;; esac
        timeout 200 "$TOWERSCOPE" train --data data --model "./$1.ini" --batch 10 --steps 1 --runs hostile
    ) >out 2>&1
    local rc=$?
    [ $rc = 1 ] || [ $rc = 3 ] || fail "the model $1: exit $rc: $(cat -v out | tail -n 3)"
    harmless out || fail "the model $1: $(cat -v out)"
    [ -z "$(find hostile -mindepth 1 2>/dev/null)" ] || fail "the model $1 left a run"
}
top='[model]\nname = m\ninput = 24\n'
out='[out]\ntype = dense\nunits = classes\ndeviation = 0.1\n'
model escape "[model]\nname = a\033[31mb\ninput = 24\n$out"
model wide "$top[a]\ntype = conv\nkernel = 3\nchannels = 1000000\n[b]\ntype = conv\nkernel = 5\nchannels = 1000000\n$out"
model overflow "$top[a]\ntype = dense\nunits = 2147483647\n[b]\ntype = dense\nunits = 2147483647\n$out"
model deep "$top$(for ((i = 0; i < 5000; i++)); do printf '[l%d]\\ntype = lrn\\nradius = 1\\nbias = 1\\nalpha = 1\\nbeta = 1\\n' $i; done)$out"
model zero "$top[a]\ntype = pool\nkernel = 0\nstride = 0\n$out"
model path '[model]\nname = ../../../etc\ninput = 24\n'"$out"
cat /dev/zero 2>/dev/null | head -c 1000000 >zeros.ini
"$TOWERSCOPE" train --data data --model ./zeros.ini --steps 1 --runs hostile >out 2>&1 && fail "a file of zeros is a model"
timeout 200 "$TOWERSCOPE" train --data data --model /dev/zero/../zero.ini --steps 1 --runs hostile >out 2>&1
[ $? -lt 124 ] || fail "a device is read as a model"

# ---- what lies in the way in a folder that everybody may write to
mkdir -m 1777 shared
mkdir elsewhere
ln -s "$PWD/elsewhere" shared/taken
ln -s "$PWD/elsewhere/made" shared/dangling
for name in taken dangling; do
    "$TOWERSCOPE" train $name "${small[@]}" --steps 1 --runs shared >out 2>&1 && fail "a run was made over the link $name"
done
[ -z "$(ls -A elsewhere)" ] || fail "a link in a shared folder was followed: $(ls -R elsewhere)"
"$TOWERSCOPE" train mine "${small[@]}" --steps 2 --checkpoint-every 1 --runs shared >out 2>&1 || fail "in a shared folder: $(cat out)"
ln -s "$PWD/elsewhere/checkpoint" shared/mine/checkpoints/step-00000003.safetensors.tmp
echo precious >elsewhere/checkpoint
"$TOWERSCOPE" train mine --steps 3 --resume --runs shared >out 2>&1
[ "$(cat elsewhere/checkpoint)" = precious ] || fail "a checkpoint was written through a link"
ln -sf "$PWD/elsewhere/lock" shared/mine/lock
"$TOWERSCOPE" train mine --steps 4 --resume --runs shared >out 2>&1 && fail "a lock that is a link is taken"
[ ! -e elsewhere/lock ] || fail "a lock was made through a link"

# ---- modes, whatever the umask
(
    umask 000
    "$TOWERSCOPE" train open "${small[@]}" --steps 2 --runs loose >out 2>&1
) || fail "umask 000: $(cat out)"
loose=$(find loose -perm /022 ! -type l)
[ -z "$loose" ] || fail "others may write to $loose"
(
    umask 077
    "$TOWERSCOPE" train tight "${small[@]}" --steps 2 --runs tight >out 2>&1
) || fail "umask 077: $(cat out)"
open=$(find tight -perm /077 ! -type l)
[ -z "$open" ] || fail "under umask 077 others may look into $open"
finish
