#!/usr/bin/env bash
# Reasons why a GPU can't be used, told apart (tests/cuda/probe.c).
set -u
[ -x "$BUILD/tests/cuda/probe" ] || { echo "this build has no GPU plugin: no CUDA toolkit was found"; exit 77; }
exec "$BUILD/tests/cuda/probe"
