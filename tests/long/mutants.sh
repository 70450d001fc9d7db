#!/bin/bash
# mutants.sh: how many of 100 small changes of the mock provider level 2 of the suite finds. Prints TAP.
cd "$(dirname "$0")/../.." && exec tests/mutants.py --count 100 --jobs "$(nproc)"
