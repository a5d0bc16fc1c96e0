# Small data sets for a trial, made with the shell's own means. To be sourced, in the place of test.sh.
. "$SOURCE/tests/support/test.sh"

# Whole numbers as big-endian 32-bit words.
be32() {
    local n
    for n in "$@"; do printf "\\x$(printf %02x $((n >> 24 & 255)))\\x$(printf %02x $((n >> 16 & 255)))\\x$(printf %02x $((n >> 8 & 255)))\\x$(printf %02x $((n & 255)))"; done
}

# COUNT bytes that differ from place to place; FIRST makes them differ from file to file.
pixels() { # COUNT FIRST
    seq "$2" $(($2 + $1)) | head -c "$1"
}

# COUNT labels 0..9 0..9 ..., beginning with FIRST.
labels() { # COUNT FIRST
    local i line=
    for ((i = 0; i < 10; i++)); do line+="\\x0$((($2 + i) % 10))"; done
    for ((i = 0; i < $1; i += 10)); do printf "$line"; done | head -c "$1"
}

idx_images() { be32 2051 "$1" "$3" "$3"; pixels $(($1 * $3 * $3)) "$2"; } # COUNT FIRST SIDE
idx_labels() { be32 2049 "$1"; labels "$1" "$2"; }                        # COUNT FIRST

# A folder of plain IDX: COUNT training images, a fifth as many test images (at least 10).
make_idx() { # FOLDER COUNT
    local test=$(($2 / 5 > 10 ? $2 / 5 : 10))
    mkdir -p "$1"
    idx_images "$2" 1000 28 >"$1/train-images-idx3-ubyte"
    idx_labels "$2" 0 >"$1/train-labels-idx1-ubyte"
    idx_images $test 5000 28 >"$1/t10k-images-idx3-ubyte"
    idx_labels $test 3 >"$1/t10k-labels-idx1-ubyte"
}

make_idx_gz() { # FOLDER COUNT
    make_idx "$1" "$2"
    gzip -n "$1"/*-ubyte
}

# A folder of CIFAR-10 binary, COUNT records a file, with the generated set's pictures.
make_cifar10() { # FOLDER COUNT
    "$TOWERSCOPE" data make "$1" --images $((5 * $2)) >/dev/null
}

# A folder of CIFAR-100 binary.
make_cifar100() { # FOLDER COUNT
    mkdir -p "$1"
    local set i
    for set in train test; do
        for ((i = 0; i < $2; i++)); do
            printf "\\x$(printf %02x $((i % 20)))\\x$(printf %02x $((i % 100)))"
            pixels 3072 $((1000 * i + ${#set}))
        done >"$1/$set.bin"
    done
}

# Write bytes (as printf understands them) into a file at a place.
poke() { # FILE OFFSET BYTES
    printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
