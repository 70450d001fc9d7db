# Sourced by tests/run and tests/long/run: runs suites and scripts, adds their cases up, and prints
# the sum as the last line whatever happens.
# shellcheck shell=bash

# shellcheck source=tests/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

work=$(mktemp -d)
touch "$work/counts" "$work/counts.failed"
started=()

# finish STATUS: run at exit; an end that no case accounts for is a failure.
finish() {
    local passed failed skipped name
    for name in "${started[@]}"; do
        tests/engines/down "$name" || count_failure "engine $name did not go down"
    done
    read -r passed failed skipped < <(
        awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }' "$work/counts"
    )
    sed 's/^/  failed: /' "$work/counts.failed"
    rm -rf "$work"
    if [ "$failed" -eq 0 ] && { [ "$1" -ne 0 ] || [ "$passed" -eq 0 ]; }; then
        echo "  FAIL  ended with status $1 after $passed passed"
        failed=1
    fi
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ] || exit 1
}

# A status of its own for each signal, so that the trap of EXIT sees one.
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'finish $?' EXIT

count_failure() {
    echo "  FAIL  $*"
    echo '0 1 0' >> "$work/counts"
    echo "$*" >> "$work/counts.failed"
}

# run_meson TITLE ARGUMENT...: the tests that meson selects by ARGUMENT.
run_meson() {
    local log=sprov-tests status=0
    echo "$1"
    shift
    rm -f "build/meson-logs/$log.json"
    meson test -C build --no-rebuild --logbase "$log" "$@" > "$work/meson.out" 2>&1 || status=$?
    python3 tests/count.py "$work/counts" meson "build/meson-logs/$log.json" "$status"
    [ -e "build/meson-logs/$log.json" ] || cat "$work/meson.out"
}

# run_scripts FOLDER SECONDS: every executable FOLDER/*.sh, which prints TAP within that time.
run_scripts() {
    local script status begun
    for script in "$1"/*.sh; do
        [ -x "$script" ] || continue
        status=0
        begun=$SECONDS
        timeout --kill-after=10 "$2" "$script" > "$work/script.out" < /dev/null || status=$?
        python3 tests/count.py "$work/counts" script "$script" $((SECONDS - begun)) \
            "$work/script.out" "$status"
    done
}

# start_private_engine NAME: sets DOCKER_HOST; what was not up before goes down at the end.
start_private_engine() {
    local ran=
    ! engine_runs "$1" || ran=1
    DOCKER_HOST=$(tests/engines/up "$1") || {
        count_failure "engine $1 did not come up"
        return 1
    }
    # Where both see it, so that sandboxes are reached by socket.
    export DOCKER_HOST XDG_STATE_HOME=$shared/state
    [ -n "$ran" ] || started+=("$1")
}
