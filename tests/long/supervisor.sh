#!/bin/bash
# supervisor.sh: what has to hold every time, a hundred times; ten thousand commands over one
# connection; the client under valgrind. Prints TAP; needs the engine of DOCKER_HOST.
set -u
cd "$(dirname "$0")/../.." || exit 1

tests=$PWD/build/tests
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0

# run COMMAND...: a Criterion program; its cases are told as ours.
run() {
    local status=0
    "$@" --tap > "$work/out" 2> "$work/err" || status=$?
    grep -v '^1\.\.' "$work/out"
    count=$((count + $(grep -cE '^(not )?ok\b' "$work/out")))
    if [ "$status" -ne 0 ] && ! grep -q '^not ok' "$work/out"; then
        count=$((count + 1))
        echo "not ok - $*: exit status $status"
        sed 's/^/# /' "$work/err"
    fi
}

# Processes other than the client's own are not its business.
grind=(valgrind -q --trace-children=yes '--trace-children-skip=*/program,*/sh,/bin/*,/usr/bin/*,/usr/sbin/*'
    --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=99)

export SPR_TEST_ROUNDS=100
run "$tests/supervisor/test_supervisor_kill" --filter 'kill/*every_time'
run env SPR_TEST_COMMANDS=10000 "$tests/supervisor/test_supervisor_exec" --filter 'exec/thousands*'
run "$tests/integration/test_placement" --filter 'hardened/*'
export SPR_TEST_ROUNDS=1
run "${grind[@]}" "$tests/supervisor/test_supervisor_process"
run "${grind[@]}" "$tests/supervisor/test_supervisor_exec" --filter 'exec/!(*mib*|thousands*|input_comes*|*stuck*)'
echo "1..$count"
