#!/bin/bash
# states.sh: the random walk through the states of sandboxes; five minutes, or SPROV_LONG_SECONDS.
set -euo pipefail
cd "$(dirname "$0")/../.."
ninja -C build tests/integration/long_states > /dev/null
exec build/tests/integration/long_states --tap
