#!/bin/bash
# storm.sh: an engine of its own that is killed and restarted in the midst of mixed calls, 20 times,
# with its containers and without (live-restore); then single faults at random in 50 runs of 200
# calls; prints TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/long/own-engine.sh
. tests/long/own-engine.sh

engine=${ENGINE:-26.1}
trap 'tests/engines/down "$engine"' EXIT
export ENGINE_RESTART="bash -c '. tests/long/own-engine.sh && own_engine_restart $engine'"

# storm NAME TEST VARIABLE=VALUE...
storm() {
    local name=$1 filter=$2
    shift 2
    : > "$work.notes"
    check "$name" env "$@" "SPROV_TEST_NOTES=$work.notes" timeout 6000 bash -c \
        'build/tests/integration/long_storm --tap --jobs 1 --filter "$0" < /dev/null > "$1" 2>&1' "$filter" "$work"
    grep -E -A2 '^ *(not ok|- )' "$work" | sed 's/^ */# /' | head -n 60
    cat "$work.notes"
}

work=$(mktemp)
own_engine "$engine" || exit 1
storm 'nothing is lost when the engine is restarted in the midst of calls' storm/of_restarts_of_the_engine
storm 'nor with engine execs alone' storm/of_restarts_of_the_engine 'STORM_OPTIONS="supervisor":"off"' STORM_ROUNDS=5
own_engine "$engine" --live-restore || exit 1
storm 'nor with live-restore' storm/of_restarts_of_the_engine STORM_ROUNDS=10
storm 'single faults at random end in time and leave nothing' storm/of_faults_at_random STORM_FAULTS=50
storm 'and with engine execs alone' storm/of_faults_at_random STORM_FAULTS=10 'STORM_OPTIONS="supervisor":"off"'
rm -f "$work" "$work.notes"
echo "1..$count"
