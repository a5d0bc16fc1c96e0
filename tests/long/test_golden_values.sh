#!/usr/bin/env bash
# The committed golden values are, byte for byte, what their script makes here. test-timeout: 900
set -eu
for python in python3 /usr/bin/python3 ''; do
    [ -n "$python" ] || { echo "no Python with NumPy (Debian: python3-numpy)"; exit 77; }
    "$python" -c 'import numpy' 2>/dev/null && break
done
exec "$python" tests/golden/make_golden.py --check
