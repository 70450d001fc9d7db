#!/bin/bash
# local.sh: level 3 of the suite on local.so against its profile, in five orders, which have to agree;
# and with ASan and UBSan. Prints TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0

point() { # NAME STATUS FILE
    count=$((count + 1))
    if [ "$2" -eq 0 ]; then
        echo "ok $count - $1"
    else
        echo "not ok $count - $1"
        grep -E -A 12 '^not ok|Sanitizer' "$3" | head -n 200 | sed 's/^/# /'
        tail -n 1 "$3" | sed 's/^/# /'
    fi
}

run() { # NAME BUILD ARGUMENT...
    local name=$1 build=$2 status=0
    shift 2
    tests/local/conformance.sh "$build/host-sim/host-sim" "$PWD/$build/plugin/local/local.so" \
        "$PWD/host-sim/profiles/local.json" --level 3 --jobs 2 "$@" --json "$work/$name.json" \
        > "$work/$name.tap" 2>&1 || status=$?
    point "$name" $status "$work/$name.tap"
}

for seed in 1 2 3 4 5; do
    run "shuffled-$seed" build --shuffle "$seed"
done
status=0
tests/long/agree.py "$work"/shuffled-*.json > "$work/differences" || status=$?
point 'five orders agree on every case' $status "$work/differences"

export G_SLICE=always-malloc UBSAN_OPTIONS=print_stacktrace=1
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:fast_unwind_on_malloc=0
export LSAN_OPTIONS=suppressions=$PWD/tests/long/cases.supp:print_suppressions=0
[ -e build-address/build.ninja ] || meson setup build-address -Dsanitize=address -Dengine_tests=true > "$work/setup"
status=0
ninja -C build-address > "$work/build.log" 2>&1 || status=$?
point 'it builds with sanitizers' $status "$work/build.log"
run sanitized build-address --time-scale 5
echo "1..$count"
