#!/bin/bash
# conformance.sh: level 3 of the suite on docker.so and the engine of DOCKER_HOST, with the supervisor and
# without, each against its profile; and five shuffled runs of level 2, which have to agree. Prints TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1

host=$PWD/build/host-sim/host-sim
provider=$PWD/build/plugin/docker/docker.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
image='"image":"debian:bookworm-slim"'
count=0

api=$(curl -s --max-time 10 --unix-socket "${DOCKER_HOST#unix://}" http://engine/version |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["ApiVersion"])')

point() { # NAME STATUS FILE
    count=$((count + 1))
    if [ "$2" -eq 0 ]; then
        echo "ok $count - $1"
    else
        echo "not ok $count - $1"
        grep -A 12 '^not ok' "$3" | head -n 200 | sed 's/^/# /'
        tail -n 1 "$3" | sed 's/^/# /'
    fi
}

run() { # NAME OPTIONS ARGUMENT...: a run of the suite as one test point
    local name=$1 options=$2 status=0
    shift 2
    "$host" check "$provider" --options "{$image$options}" --hooks host-sim/hooks/docker.json \
        --json "$work/$name.json" "$@" > "$work/$name.tap" || status=$?
    point "$name" $status "$work/$name.tap"
}

run "docker-$api" '' --level 3 --profile "host-sim/profiles/docker-$api.json"
run "docker-$api-plain" ',"supervisor":"off"' --level 3 --profile "host-sim/profiles/docker-$api-plain.json"
for seed in 1 2 3 4 5; do
    run "shuffled-$seed" '' --level 2 --shuffle "$seed"
done

status=0
tests/long/agree.py "$work"/shuffled-*.json > "$work/differences" || status=$?
point 'five orders agree on every case' $status "$work/differences"
echo "1..$count"
