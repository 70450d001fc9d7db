#!/bin/bash
# freeze.sh: an engine of its own, stopped by SIGSTOP in the middle of every kind of call; prints TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/long/own-engine.sh
. tests/long/own-engine.sh

engine=${ENGINE:-26.1}
own_engine "$engine" || exit 1
trap 'kill -CONT "$ENGINE_PID"; tests/engines/down "$engine"' EXIT
ENGINE_PID=$(own_engine_pid "$engine")
SPROV_TEST_NOTES=$(mktemp)
export ENGINE_PID SPROV_TEST_NOTES
build/tests/integration/long_freeze --tap --jobs 1 < /dev/null
cat "$SPROV_TEST_NOTES"
rm -f "$SPROV_TEST_NOTES"
