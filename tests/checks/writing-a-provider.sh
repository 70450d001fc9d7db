#!/bin/bash
# writing-a-provider.sh: does what docs/writing-a-provider.md tells a provider's author to do, and
# prints TAP. Needs no engine.
set -u
cd "$(dirname "$0")/../.." || exit 1

host=$PWD/build/host-sim/host-sim
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
count=0

check() { # NAME CONDITION...
    local name=$1
    shift
    count=$((count + 1))
    if "$@" > "$work/log" 2>&1; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        head -c 2000 "$work/log" | sed 's/^/# /'
    fi
}

compile() { # SOURCE OBJECT: the command of the page
    cc -std=gnu11 -D_GNU_SOURCE -Wall -Werror -fPIC -shared -Iabi -o "$2" "$1" -ljansson
}

first_check() { # OBJECT
    "$host" check "$1" --level 1 --include 'EXE-0*' --include LEK-01
}

passes() {
    first_check "$work/my-provider.so" | tee "$work/out" &&
        grep -qx '9 passed, 0 failed, 0 skipped' "$work/out"
}

broken_is_found() {
    sed 's/dup2(err, 2)/dup2(out, 2)/' docs/examples/minimal-provider.c > "$work/broken.c"
    compile "$work/broken.c" "$work/broken.so" || return 1
    first_check "$work/broken.so" | tee "$work/out"
    grep -q '^not ok 2 - EXE-02' "$work/out" && tail -n 1 "$work/out" | grep -q ' [1-9] failed, '
}

runs() {
    [ "$("$host" run --provider "$work/my-provider.so" --options '{"id":"first"}' \
        -- sh -c 'echo out; exit 7' < /dev/null || echo "$?")" = "$(printf 'out\n7')" ]
}

echo 1..4
check 'the minimal provider compiles with the command of the page' \
    compile docs/examples/minimal-provider.c "$work/my-provider.so"
check 'its first command prints and ends as the page says' runs
check 'its first check passes' passes
check 'a broken stream is found by the case that the page shows' broken_is_found
