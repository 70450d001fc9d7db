#!/bin/bash
# fuzz.sh: `host-sim fuzz` for some minutes on the engine of DOCKER_HOST, by each way that commands
# take, and on the mock; prints TAP. SEED is that of the first script, MINUTES those of each (5).
set -u
cd "$(dirname "$0")/../.." || exit 1

seed=${SEED:-$((RANDOM * 1000))}
minutes=${MINUTES:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/engine"
count=0

fuzz() { # NAME OPTION...
    local verdict=ok name=$1
    shift
    count=$((count + 1))
    build/host-sim/host-sim fuzz --seed "$seed" --time $((minutes * 60)) --time-scale 3 --folder "$work" "$@" \
        > "$work/out" 2>&1 || verdict='not ok'
    echo "$verdict $count - nothing is found in $name, seeds from $seed"
    sed 's/^/# /' "$work/out"
}

fuzz 'the mock' --provider build/tests/providers/mock.so --config "{\"host\":\"unix://$work/engine\"}" --length 120
if [ -n "${DOCKER_HOST-}" ]; then
    for option in '"transport":"auto"' '"transport":"stream"' '"supervisor":"off"'; do
        fuzz "docker, $option" --provider build/plugin/docker/docker.so \
            --options "{\"image\":\"debian:bookworm-slim\",$option}"
    done
fi
echo "1..$count"
