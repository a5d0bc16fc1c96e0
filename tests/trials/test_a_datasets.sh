#!/usr/bin/env bash
# Data set files that others met: cut, swapped, mislabelled, of another edition, unreadable. Each is refused within two
# seconds by one line that names the file and the reason, and its control is taken.
# test-timeout: 240
. "$SOURCE/tests/trials/fixtures.sh"
N=200

train() { # FOLDER
    timeout 200 "$TOWERSCOPE" train --data "$1" --model softmax --towers 2 --batch 64 --steps 3 --seed 1 --runs runs
}

# The folder is taken; what check prints has the given words.
accept() { # FOLDER WORD...
    local folder=$1 out word
    shift
    out=$("$TOWERSCOPE" data check "$folder" 2>&1) || fail "$folder should be taken: $out"
    for word in "$@"; do
        grep -qF -- "$word" <<<"$out" || fail "$folder: \"$word\" is not in: $out"
    done
    out=$(train "$folder" 2>&1) || fail "$folder should train: $out"
    [ "$(grep -c '^warning:' <<<"$out")" = "$("$TOWERSCOPE" data check "$folder" | grep -c '^warning:')" ] ||
        fail "$folder: train does not warn as data check does: $out"
}

refused_by() { # FOLDER COMMAND... -- WORD...
    local folder=$1 out rc word command=()
    shift
    while [ "$1" != -- ]; do
        command+=("$1")
        shift
    done
    shift
    # Seconds of computing, not by the clock, which runs on while other tests have the processor.
    out=$(timeout 200 bash -c 'TIMEFORMAT="%U + %S"; { time "$@" 2>&3; } 2>refused.time' - "${command[@]}" 3>&1 >refused.out)
    rc=$?
    case $rc in
    1 | 3 | 4) ;;
    *) fail "$folder: exit $rc: $out" ;;
    esac
    [ "$(wc -l <<<"$out")" = 1 ] || fail "$folder: more than one line: $out"
    [ ! -s refused.out ] || fail "$folder: something on stdout: $(head -c 300 refused.out)"
    case $BUILD in
    */release) awk '{ exit !($1 + $3 < 2) }' refused.time || fail "$folder: computed for two seconds" ;;
    esac
    for word in "$@"; do
        grep -qF -- "$word" <<<"$out" || fail "$folder: \"$word\" is not in: $out"
    done
}

# The folder is refused, and the sentence has the given words.
refuse() { # FOLDER WORD...
    local folder=$1
    shift
    refused_by "$folder" "$TOWERSCOPE" data check "$folder" -- "$@"
    rm -rf refused-runs
    refused_by "$folder" "$TOWERSCOPE" train --data "$folder" --model softmax --steps 3 --runs refused-runs -- "$@"
    [ -z "$(find refused-runs -mindepth 1 2>/dev/null)" ] || fail "$folder: a run folder was made: $(find refused-runs)"
}

copy() { # FROM TO
    mkdir -p "$(dirname "$2")"
    cp -r "$1" "$2"
}
IM=train-images-idx3-ubyte LA=train-labels-idx1-ubyte
TIM=t10k-images-idx3-ubyte TLA=t10k-labels-idx1-ubyte

# ---- controls
make_idx ok/plain $N
make_idx_gz ok/gz $N
make_cifar10 ok/cifar10 $N
make_cifar100 ok/cifar100 20
accept ok/plain '200 of 28x28x1' 'test images      40'
accept ok/gz '200 of 28x28x1' 'test images      40'
accept ok/cifar10 '1000 of 32x32x3' 'test images      200' star
accept ok/cifar100 '20 of 32x32x3' 'test images      20' 'classes          100'

# ---- A1: shorter or longer than the format says
size=$(stat -c %s ok/gz/$IM.gz)
copy ok/gz a1/gz_cut; truncate -s $((size * 6 / 10)) a1/gz_cut/$IM.gz
refuse a1/gz_cut $IM.gz "$((size * 6 / 10)) bytes" 'whole records'
copy ok/gz a1/gz_no_trailer; truncate -s -8 a1/gz_no_trailer/$IM.gz
refuse a1/gz_no_trailer $IM.gz 'cut short'
copy ok/gz a1/gz_damaged; poke a1/gz_damaged/$IM.gz $((size / 2)) '\xff\xff\xff\xff\xff\xff\xff\xff'
refuse a1/gz_damaged $IM.gz
copy ok/gz a1/gz_longer; { gzip -dc ok/gz/$IM.gz; echo; } | gzip -n >a1/gz_longer/$IM.gz
refuse a1/gz_longer $IM.gz 'more bytes than'
copy ok/gz a1/gz_tail; echo tail >>a1/gz_tail/$IM.gz
refuse a1/gz_tail $IM.gz
copy ok/gz a1/gz_two_members
{ gzip -dc ok/gz/$IM.gz | head -c 70000 | gzip -n; gzip -dc ok/gz/$IM.gz | tail -c +70001 | gzip -n; } >a1/gz_two_members/$IM.gz
accept a1/gz_two_members '200 of 28x28x1'
copy ok/plain a1/plain_cut; truncate -s 94089 a1/plain_cut/$IM
refuse a1/plain_cut $IM 94089 156816 '119 whole records'
copy ok/plain a1/plain_plus1; printf '\0' >>a1/plain_plus1/$IM
refuse a1/plain_plus1 $IM 156817 156816
copy ok/plain a1/header_only; truncate -s 16 a1/header_only/$IM
refuse a1/header_only $IM '16 bytes' 156816
copy ok/plain a1/header_cut; truncate -s 11 a1/header_cut/$IM
refuse a1/header_cut $IM 11 16
copy ok/plain a1/empty_file; : >a1/empty_file/$IM
refuse a1/empty_file $IM 'is empty'
copy ok/plain a1/labels_cut; truncate -s 100 a1/labels_cut/$LA
refuse a1/labels_cut $LA 100 208
copy ok/plain a1/promises_much; poke a1/promises_much/$IM 4 '\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff'
refuse a1/promises_much $IM
copy ok/gz a1/gz_bomb
{ be32 2051 4000000000 4096 4096; head -c 100000 /dev/zero; } | gzip -n >a1/gz_bomb/$IM.gz
refuse a1/gz_bomb $IM.gz 'more than a gz file of'
copy ok/plain a1/no_images; poke a1/no_images/$IM 4 '\0\0\0\0'; truncate -s 16 a1/no_images/$IM
refuse a1/no_images $IM
copy ok/cifar10 a1/cifar_cut; truncate -s $((3073 * 100 + 1500)) a1/cifar_cut/data_batch_3.bin
refuse a1/cifar_cut data_batch_3.bin 308800 '100 whole records' '1500 bytes over'
copy ok/cifar10 a1/cifar_plus1; printf '\0' >>a1/cifar_plus1/data_batch_5.bin
refuse a1/cifar_plus1 data_batch_5.bin 614601 614600
copy ok/cifar10 a1/cifar_4batches; rm a1/cifar_4batches/data_batch_5.bin
refuse a1/cifar_4batches data_batch_5.bin
copy ok/cifar10 a1/cifar_no_test; rm a1/cifar_no_test/test_batch.bin
refuse a1/cifar_no_test test_batch.bin
copy ok/cifar10 a1/cifar_short_batch; truncate -s $((3073 * 90)) a1/cifar_short_batch/data_batch_4.bin
accept a1/cifar_short_batch warning: data_batch_4.bin 90
copy ok/cifar10 a1/meta_blank_line; sed -i 's/$/\r/; $a\\r' a1/meta_blank_line/batches.meta.txt
accept a1/meta_blank_line 'classes          10' crescent
copy ok/cifar10 a1/meta_eleven; echo eleventh >>a1/meta_eleven/batches.meta.txt
refuse a1/meta_eleven batches.meta.txt 11 10
copy ok/cifar10 a1/meta_nine; sed -i 1d a1/meta_nine/batches.meta.txt
refuse a1/meta_nine batches.meta.txt 9 10

# ---- A2: content and name disagree
html='<!DOCTYPE html>\n<html><head><title>403 Forbidden</title></head><body>no</body></html>\n'
copy ok/gz a2/html_as_gz; printf "$html" >a2/html_as_gz/$IM.gz
refuse a2/html_as_gz $IM.gz 'web page'
copy ok/plain a2/html_plain; printf "$html" >a2/html_plain/$IM
refuse a2/html_plain $IM 'web page'
copy ok/gz a2/html_inside_gz; printf "$html" | gzip -n >a2/html_inside_gz/$IM.gz
refuse a2/html_inside_gz $IM.gz 'web page'
copy ok/cifar10 a2/html_cifar; printf "\n$html" >a2/html_cifar/data_batch_2.bin
refuse a2/html_cifar data_batch_2.bin 'web page'
copy ok/plain a2/gz_named_plain; gzip -nc ok/plain/$IM >a2/gz_named_plain/$IM
accept a2/gz_named_plain '200 of 28x28x1'
copy ok/gz a2/plain_named_gz; gzip -dc ok/gz/$IM.gz >a2/plain_named_gz/$IM.gz
accept a2/plain_named_gz '200 of 28x28x1'
result() { train "$1" 2>/dev/null | sed -n 's/.*\(precision @ 1 .*\)/\1/p'; }
control=$(result ok/gz)
for f in ok/plain a1/gz_two_members a2/gz_named_plain a2/plain_named_gz; do
    [ -n "$control" ] && [ "$(result $f)" = "$control" ] || fail "$f does not train as its control: $(result $f), $control"
done
copy ok/gz a2/gz_twice; gzip -nc ok/gz/$IM.gz >a2/gz_twice/$IM.gz
refuse a2/gz_twice $IM.gz 'compressed twice'
copy ok/plain a2/xz; printf '\xfd7zXZ\0\0\4' >a2/xz/$IM; cat ok/plain/$IM >>a2/xz/$IM
refuse a2/xz $IM 'compressed with xz'
copy ok/cifar10 a2/tab_and_less; poke a2/tab_and_less/data_batch_3.bin 0 '\x09<b' # a label and pixels, no web page
accept a2/tab_and_less '1000 of 32x32x3'
copy ok/cifar10 a2/cifar_gz; gzip a2/cifar_gz/*.bin
refuse a2/cifar_gz '.bin.gz: unpack it with gunzip'
gunzip a2/cifar_gz/data_batch_1.bin.gz
refuse a2/cifar_gz data_batch_2.bin '.bin.gz: unpack it with gunzip'
copy ok/cifar100 a2/gz_named_bin; gzip -nc ok/cifar100/test.bin >a2/gz_named_bin/test.bin
refuse a2/gz_named_bin test.bin 'packed with gzip: name it test.bin.gz'
mkdir a2/archive; tar czf a2/archive/cifar-10-binary.tar.gz ok/cifar100
refuse a2/archive 'cifar-10-binary.tar.gz: unpack it with tar xf'
copy ok/cifar10 a2/tar; tar cf a2/tar/data_batch_1.bin ok/plain/$IM
refuse a2/tar data_batch_1.bin 'tar archive'

# ---- A4: labels outside the classes
copy ok/plain a4/one_label_10; poke a4/one_label_10/$LA $((8 + 137)) '\x0a'
refuse a4/one_label_10 $LA 'record 137' 'label 10' '0 to 9'
copy ok/plain a4/one_label_255; poke a4/one_label_255/$LA $((8 + 5)) '\xff'
refuse a4/one_label_255 $LA 'record 5' 'label 255' '0 to 9'
copy ok/plain a4/test_label; poke a4/test_label/$TLA $((8 + 39)) '\x0b'
refuse a4/test_label $TLA 'record 39' 'label 11'
copy ok/plain a4/labels_from_1
{ be32 2049 $N; labels $N 0 | tr '\0-\11' '\1-\12'; } >a4/labels_from_1/$LA
refuse a4/labels_from_1 $LA 'numbered from 1?'
copy ok/plain a4/eleven_classes; cp a4/one_label_10/$LA a4/eleven_classes/; seq 11 >a4/eleven_classes/classes.txt
accept a4/eleven_classes 'classes          11'
copy ok/cifar10 a4/cifar_label_10; poke a4/cifar_label_10/data_batch_2.bin $((3073 * 17)) '\x0a'
refuse a4/cifar_label_10 data_batch_2.bin 'record 17' 'label 10' '0 to 9'
copy ok/cifar100 a4/coarse; poke a4/coarse/train.bin $((3074 * 3)) '\x14'
refuse a4/coarse train.bin 'record 3' 'coarse label 20' '0 to 19'
copy ok/cifar100 a4/fine; poke a4/fine/test.bin $((3074 * 3 + 1)) '\x64'
refuse a4/fine test.bin 'record 3' 'fine label 100' '0 to 99'

# ---- A5: another edition of CIFAR
mkdir -p a5/cifar-10-batches-py
for i in 1 2 3 4 5; do { printf '\x80\x02}q\x01('; pixels 9000 $i; } >a5/cifar-10-batches-py/data_batch_$i; done
cp a5/cifar-10-batches-py/data_batch_1 a5/cifar-10-batches-py/test_batch
refuse a5/cifar-10-batches-py 'Python edition' 'binary edition'
copy ok/cifar10 a5/pickle_renamed_bin; cp a5/cifar-10-batches-py/data_batch_1 a5/pickle_renamed_bin/data_batch_1.bin
refuse a5/pickle_renamed_bin data_batch_1.bin 'Python edition' 'binary edition'
mkdir a5/c10_bytes_as_c100
for s in train test; do cp ok/cifar10/test_batch.bin a5/c10_bytes_as_c100/$s.bin; done
refuse a5/c10_bytes_as_c100 train.bin 614600 3074
copy ok/cifar10 a5/c100_bytes_as_c10; cp ok/cifar100/test.bin a5/c100_bytes_as_c10/data_batch_3.bin
refuse a5/c100_bytes_as_c10 data_batch_3.bin 3073

# ---- A8: files that do not belong together
copy ok/plain a8/swapped; cp ok/plain/$LA a8/swapped/$IM; cp ok/plain/$IM a8/swapped/$LA
refuse a8/swapped $IM 2049 2051 swapped
copy ok/plain a8/count_mismatch; idx_labels $((N - 1)) 0 >a8/count_mismatch/$LA
refuse a8/count_mismatch $IM $LA 200 199
copy ok/plain a8/little_endian; poke a8/little_endian/$IM 0 '\x03\x08\0\0\xc8\0\0\0\x1c\0\0\0\x1c\0\0\0'
refuse a8/little_endian $IM little-endian
copy ok/plain a8/float_idx; poke a8/float_idx/$IM 2 '\x0d'
refuse a8/float_idx $IM 0x0D float 0x08
copy ok/plain a8/train28_test32; idx_images 40 9 32 >a8/train28_test32/$TIM
refuse a8/train28_test32 $TIM 32x32 28x28
copy ok/plain a8/train_is_test; cp ok/plain/$IM a8/train_is_test/$TIM; cp ok/plain/$LA a8/train_is_test/$TLA
accept a8/train_is_test warning: 'byte for byte the training images'
copy ok/cifar10 a8/test_is_batch_3; cp ok/cifar10/data_batch_3.bin a8/test_is_batch_3/test_batch.bin
accept a8/test_is_batch_3 warning: 'images 400 to 599'
copy ok/plain a8/train_labels_for_test
idx_images $N 77 28 >a8/train_labels_for_test/$TIM; cp ok/plain/$LA a8/train_labels_for_test/$TLA
accept a8/train_labels_for_test warning: 'test labels are byte for byte'
copy ok/plain a8/one_class; { printf '\x00\x00\x08\x01\x00\x00\x00\xc8'; head -c 200 /dev/zero | tr '\0' '\3'; } >a8/one_class/$LA
accept a8/one_class 'warning: 9 of the 10 classes, the first of them 0, have no training image'

copy ok/cifar10 a8/batch_twice; cp ok/cifar10/data_batch_2.bin a8/batch_twice/data_batch_5.bin
accept a8/batch_twice warning: data_batch_2.bin data_batch_5.bin 'the same images'

# ---- A9: there, but not reachable
copy ok/gz 'a9/with space/mnist'
accept 'a9/with space/mnist' 'mnist (idx)'
copy ok/gz 'a9/données-数据'
accept 'a9/données-数据' 'données-数据 (idx)'
mkdir a9/links a9/broken a9/loop a9/empty
for f in ok/gz/*; do
    ln -s ../../"$f" a9/links/
    ln -s ../nowhere/"$(basename "$f")" a9/broken/
done
ln -s $IM a9/loop/$IM
accept a9/links '200 of 28x28x1'
mkdir a9/dots
for f in ok/plain/*; do cp "$f" a9/dots/"$(basename "${f/-idx/.idx}")"; done
accept a9/dots '200 of 28x28x1'
mkdir a9/upper; for f in ok/plain/*; do cp "$f" a9/upper/; done; mv a9/upper/$LA a9/upper/${LA^^}
refuse a9/upper 'training labels' "there is ${LA^^}"
copy ok/plain a9/part; mv a9/part/$IM "a9/part/$IM (1)"
refuse a9/part "there is $IM (1)"
refuse a9/broken 'broken link' ../nowhere/
refuse a9/loop $IM
refuse a9/empty 'empty folder' $IM data_batch_1.bin
mkdir a9/other; echo hello >a9/other/readme.txt
refuse a9/other 'no data set' readme.txt $IM
copy ok/plain a9/three; rm a9/three/$TLA
refuse a9/three 'test labels' $TLA
refuse ok/plain/$IM $IM 'is a file' IDX 'give the folder'
refuse ok/cifar10/data_batch_1.bin 'is a file' CIFAR-10 'give the folder'
refuse ok/cifar10/batches.meta.txt 'is a file' folder
refuse ok/cifar10/batches.meta.txt/below 'not a folder'
refuse nowhere nowhere fashion-mnist generated
mkdir a9/folder_for_file; copy ok/plain a9/folder_for_file/set; rm a9/folder_for_file/set/$IM; mkdir a9/folder_for_file/set/$IM
refuse a9/folder_for_file/set $IM 'is a folder'
copy ok/plain a9/pipe; rm a9/pipe/$IM; mkfifo a9/pipe/$IM
refuse a9/pipe $IM 'pipe'
copy ok/plain a9/both; mkdir -p a9/both; cp ok/cifar100/*.bin a9/both/
refuse a9/both 'two formats'
copy ok/plain a9/no_mode; chmod 000 a9/no_mode/$IM
copy ok/plain a9/closed/set; chmod 600 a9/closed
if [ "$(id -u)" != 0 ]; then
    refuse a9/no_mode $IM 'no permission'
    refuse a9/closed/set 'no permission' a9/closed
elif caps=(setpriv --bounding-set=-dac_override,-dac_read_search) && ! "${caps[@]}" cat a9/no_mode/$IM >/dev/null 2>&1; then
    # root without the rights to pass modes by is as any other owner
    refused_by a9/no_mode "${caps[@]}" "$TOWERSCOPE" data check a9/no_mode -- $IM 'no permission'
    refused_by a9/closed "${caps[@]}" "$TOWERSCOPE" data check a9/closed/set -- 'no permission' a9/closed
    refused_by a9/closed "${caps[@]}" "$TOWERSCOPE" data check a9/closed -- 'no permission' a9/closed
else
    echo 'not tried here: files that may not be read (setpriv is missing or lacks the right)'
fi

# ---- names of classes, and folders, as they come
copy ok/plain a9/names; { printf '\xef\xbb\xbfnought\r\n'; printf 'c\xff\x1b%s\n' 1 2 3 4 5 6 7 8 9; } >a9/names/classes.txt
accept a9/names ' 0  nought ' ' 1  c??1 '
odd=$'a9/folder\x9bof\xe2\x80\xaenames' # a control of eight bits, and a mark that turns the writing
copy a9/names "$odd"; cp ok/gz/$IM.gz "$odd"
accept "$odd" 'folder?of?names (idx)' 'folder?of?names/'$IM.gz

# ---- plain and compressed side by side: one is read, and it is said which
copy ok/plain a9/twice; gzip -nk a9/twice/$IM
accept a9/twice "a9/twice/$IM is read; a9/twice/$IM.gz, which lies beside it, is not"

# ---- files that look like data and are none of those that are read
mkdir -p a9/six; cp ok/cifar10/* a9/six/; cp ok/cifar10/data_batch_1.bin a9/six/data_batch_6.bin
touch a9/six/readme.html a9/six/cifar-10-binary.tar.gz a9/six/.data_batch_7.bin; mkdir a9/six/batches
accept a9/six '1000 of 32x32x3' 'warning: a9/six holds files that look like data and are not used: data_batch_6.bin'
"$TOWERSCOPE" data check a9/six | grep -qx 'warning: .*used: data_batch_6.bin' || fail "a9/six: $("$TOWERSCOPE" data check a9/six)"
copy ok/plain a9/more; touch a9/more/extra-images-idx3-ubyte a9/more/part{2,10,3}.bin a9/more/{notes,train-labels}.txt a9/more/data.gz
accept a9/more 'not used: data.gz, extra-images-idx3-ubyte, part2.bin, part3.bin and 1 more'
"$TOWERSCOPE" data check ok/cifar10 | grep -q 'not used' && fail 'all of it is used'

# ---- what cannot be written
refused_by 'data make in a folder that is not empty' "$TOWERSCOPE" data make ok/cifar10 --images 100 -- 'not empty'
cmp -s ok/cifar10/test_batch.bin a1/cifar_plus1/test_batch.bin || fail 'data make changed a folder it refused'
refused_by 'data make below nothing' "$TOWERSCOPE" data make nowhere/set --images 100 -- nowhere/set
(
    ulimit -f 2000
    trap '' XFSZ
    refused_by 'data make without room' "$TOWERSCOPE" data make toolarge --images 5000 -- toolarge 'cannot write'
)
[ ! -e toolarge ] || fail 'data make left half a set behind'

finish
