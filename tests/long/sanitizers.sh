#!/bin/bash
# sanitizers.sh: the whole provider with ASan and UBSan: what needs no engine, the engine suites and
# level 1 of the conformance suite; and with TSan, where criterion cannot run, the gate, and level 2 of
# the conformance suite, with and without supervisor; and with either, the storm of single faults. One
# TAP line a suite; what a sanitizer says is in build-address and build-thread,
# meson-logs/sprov-sanitize.txt, conformance-*.txt and storm-*.txt.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${DOCKER_HOST:?the engine to use}"

# GLib's own allocator hides what is freed, and from TSan also who handed it to whom.
export G_SLICE=always-malloc
# What it takes for the size of a library's thread-local storage is wrong now and then: then the search
# for leaks ends with a signal 11 of its own.
asan=detect_leaks=1:detect_stack_use_after_return=1:fast_unwind_on_malloc=0
export ASAN_OPTIONS=$asan:intercept_tls_get_addr=0
export LSAN_OPTIONS=suppressions=$PWD/tests/long/cases.supp:print_suppressions=0
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=second_deadlock_stack=1

count=0

# Prints the results that meson left of the tests in $1.
report() {
    python3 - "$1/meson-logs/sprov-sanitize.json" "$2" "$count" << 'END'
import json
import sys

path, title, count = sys.argv[1:]
for line in open(path, encoding="utf-8"):
    test = json.loads(line)
    count = int(count) + 1
    result = "ok" if test["result"] in ("OK", "SKIP") else "not ok"
    skip = " # SKIP" if test["result"] == "SKIP" else ""
    print(f"{result} {count} - {title}: {test['name']}{skip}")
END
    count=$((count + $(wc -l < "$1/meson-logs/sprov-sanitize.json")))
}

# Builds with the sanitizer $1 in build-$1.
build() {
    [ -e "build-$1/build.ninja" ] ||
        meson setup "build-$1" "-Dsanitize=$1" -Dengine_tests=true > /dev/null
    ninja -C "build-$1" > "build-$1/build.log" 2>&1 && return
    tail -n 20 "build-$1/build.log" | sed 's/^/# /'
    count=$((count + 1))
    echo "not ok $count - $1: it builds"
    return 1
}

# storm SANITIZER NAME VARIABLE=VALUE...: single faults at random
storm() {
    local log=build-$1/meson-logs/storm-$2.txt notes=build-$1/meson-logs/storm-$2.notes result='not ok'
    : > "$notes"
    count=$((count + 1))
    ! env "${@:3}" "SPROV_TEST_NOTES=$notes" timeout 5000 "build-$1/tests/integration/race_storm" \
        'storm/of_faults_at_random' > "$log" 2>&1 || result=ok
    echo "$result $count - $1: single faults at random, $2"
    grep -E '^# |SUMMARY' "$log" | head -n 40 || true
    cat "$notes"
}

storms() { # SANITIZER
    storm "$1" auto STORM_FAULTS=50
    storm "$1" off STORM_FAULTS=10 'STORM_OPTIONS="supervisor":"off"'
}

if build address; then
    rm -f build-address/meson-logs/sprov-sanitize.json
    # Everything takes some times as long.
    meson test -C build-address --no-rebuild --logbase sprov-sanitize -t 5 --num-processes 2 \
        > /dev/null 2>&1 || true
    report build-address address
    storms address
fi

if build thread; then
    count=$((count + 1))
    result='not ok'
    ! build-thread/tests/unit/race_gate > build-thread/meson-logs/race_gate.txt 2>&1 || result=ok
    echo "$result $count - thread: the gate of logins"
    grep -E '^not ok|SUMMARY' build-thread/meson-logs/race_gate.txt | sed 's/^/# /' || true
    for mode in auto off; do
        count=$((count + 1))
        log=build-thread/meson-logs/conformance-$mode.txt
        result='not ok'
        ! build-thread/host-sim/host-sim check build-thread/plugin/docker/docker.so --level 2 \
            --time-scale 5 --known-failures tests/long/sanitizers.known --options "{\"image\":\"debian:bookworm-slim\",\"supervisor\":\"$mode\"}" \
            > "$log" 2>&1 || result=ok
        echo "$result $count - thread: conformance $mode, $(tail -n 1 "$log")"
        grep -E '^not ok|SUMMARY' "$log" | sed 's/^/# /' || true
    done
    storms thread
fi
echo "1..$count"
