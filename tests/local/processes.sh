#!/bin/bash
# processes.sh HOST-SIM LOCAL.SO: tests/checks/processes.sh on local.so; prints TAP.
set -u
XDG_STATE_HOME=$(mktemp -d)
HOST_SIM=$(realpath "$1") # the script goes elsewhere
PROVIDER=$(realpath "$2")
export XDG_STATE_HOME HOST_SIM PROVIDER OPTIONS='{}'
trap 'rm -rf "$XDG_STATE_HOME"' EXIT
if ! why=$("$1" run --provider "$2" -c true 2>&1); then
    echo "1..0 # SKIP ${why%%$'\n'*}"
    exit 0
fi
"$(dirname "$0")/../checks/processes.sh"
