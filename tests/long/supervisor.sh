#!/bin/bash
# supervisor.sh: what has to hold every time, a hundred times, and ten thousand commands over one
# connection. Prints TAP; needs the engine of DOCKER_HOST.
set -u
cd "$(dirname "$0")/../.." || exit 1

tests=$PWD/build/tests
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0

# run COMMAND...: a Criterion program; its cases that the filter lets pass are told as ours.
run() {
    local status=0
    "$@" --tap > "$work/all" 2> "$work/err" || status=$?
    grep -vE '^1\.\.|^TAP version|# SKIP test was skipped' "$work/all" > "$work/out"
    cat "$work/out"
    count=$((count + $(grep -cE '^(not )?ok\b' "$work/out")))
    if [ "$status" -ne 0 ] && ! grep -q '^not ok' "$work/out"; then
        count=$((count + 1))
        echo "not ok - $*: exit status $status"
        sed 's/^/# /' "$work/err"
    fi
}

export SPR_TEST_ROUNDS=100
run "$tests/supervisor/test_supervisor_kill" --filter 'kill/*every_time'
run env SPR_TEST_COMMANDS=10000 "$tests/supervisor/test_supervisor_exec" --filter 'exec/thousands*'
run "$tests/integration/test_placement" --jobs=1 --filter 'hardened/*'
echo "1..$count"
