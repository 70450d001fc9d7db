#!/bin/bash
# cut.sh HOST-SIM LOCAL.SO: starts that are given up at any moment leave no process; prints TAP.
set -u
XDG_STATE_HOME=$(mktemp -d)
export XDG_STATE_HOME
trap 'rm -rf "$XDG_STATE_HOME"' EXIT
if ! why=$("$1" run --provider "$2" -c true 2>&1); then
    echo "1..0 # SKIP ${why%%$'\n'*}"
    exit 0
fi

# All that has to do with our sandboxes names their folder.
left() { pgrep -f -- "$XDG_STATE_HOME"; }

# CON-05 ends some of many starts at once at any moment.
for ((seed = 1; seed <= 6; seed++)); do
    "$1" check "$2" --level 3 --include CON-05 --seed $seed --time-scale 2 > "$XDG_STATE_HOME/out" 2>&1 ||
        sed 's/^/# /' "$XDG_STATE_HOME/out"
done
for ((i = 0; i < 100; i++)); do
    [ -n "$(left)" ] || break
    sleep 0.1
done
verdict=ok
for pid in $(left); do
    verdict='not ok'
    tr '\0' ' ' < "/proc/$pid/cmdline" | cut -c -150 | sed 's/^/# left: /'
    kill -KILL "$pid"
done
echo "$verdict 1 - starts that were given up leave no process"
echo 1..1
