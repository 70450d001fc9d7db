#!/bin/bash
# conformance.sh HOST-SIM LOCAL.SO PROFILE ARGUMENT...: the suite on local.so against its profile, in
# a state folder of its own; prints its TAP. Skips where bubblewrap does not work.
set -u
host=$1
so=$2
profile=$3
shift 3
XDG_STATE_HOME=$(mktemp -d)
export XDG_STATE_HOME
trap 'rm -rf "$XDG_STATE_HOME"' EXIT
if ! why=$("$host" run --provider "$so" -c true 2>&1); then
    echo "1..0 # SKIP ${why%%$'\n'*}"
    exit 0
fi
"$host" check "$so" --profile "$profile" --hooks "$(dirname "$0")/../../host-sim/hooks/local.json" "$@"
