#!/usr/bin/env bash
# The committed golden values are, byte for byte, what their script makes here, and TensorFlow agrees with them where
# a Python has it. test-timeout: 900
set -eu
first_with() { # MODULE
    local python
    for python in python3 /usr/bin/python3; do
        "$python" -c "import importlib.util, sys; sys.exit(not importlib.util.find_spec('$1'))" 2>/dev/null && echo "$python" && return
    done
    return 1
}
numpy=$(first_with numpy) || { echo "no Python with NumPy (Debian: python3-numpy)"; exit 77; }
"$numpy" tests/golden/make_golden.py --check
if tensorflow=$(first_with tensorflow); then "$tensorflow" tests/golden/tensorflow_towers.py; fi
