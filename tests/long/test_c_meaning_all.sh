#!/usr/bin/env bash
# tests/trials/test_c_meaning.c with every number of images, batch and number of towers.
# test-timeout: 900
set -u
ALL=1 exec "$BUILD/tests/trials/test_c_meaning"
