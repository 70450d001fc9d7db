#!/bin/bash
# conformance.sh: level 3 of the suite on docker.so and the engine of DOCKER_HOST, with the supervisor and
# without, and on local.so, each against its profile, whose list of skips is that of the run; one command
# line of host-sim on both; and five shuffled runs of level 2, which have to agree. Prints TAP.
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
    fi
    tail -n 1 "$3" | sed 's/^/# /'
}

run() { # NAME ARGUMENT...: a run of the suite as one test point
    local name=$1 status=0
    shift
    "$host" check "$@" --json "$work/$name.json" > "$work/$name.tap" || status=$?
    point "$name" $status "$work/$name.tap"
}

on_docker() { # NAME OPTIONS ARGUMENT...
    local name=$1 options=$2
    shift 2
    run "$name" "$provider" --options "{$image$options}" --hooks host-sim/hooks/docker.json "$@"
}

skips() { # NAME: those of the run are those of its profile
    local status=0
    tests/long/skipped.py "$work/$1.json" "host-sim/profiles/$1.json" > "$work/skips" || status=$?
    point "$1 skips what its profile says" $status "$work/skips"
}

on_docker "docker-$api" '' --level 3 --profile "host-sim/profiles/docker-$api.json"
skips "docker-$api"
on_docker "docker-$api-plain" ',"supervisor":"off"' --level 3 \
    --profile "host-sim/profiles/docker-$api-plain.json"
skips "docker-$api-plain"
if command -v bwrap > "$work/bwrap"; then
    run local build/plugin/local/local.so --level 3 --hooks host-sim/hooks/local.json \
        --profile host-sim/profiles/local.json
    skips local
fi

same_run() { # PROVIDER: leaves what became of the variable, folder, input, both streams and exit code
    printf 'in\0put' | "$host" run --provider "$1" -e "A=it's \$A" --cwd /tmp -c 'printf "%s %s " "$A" "$PWD"
        od -An -c; echo to stderr >&2; for i in 1 2 3; do echo line $i; sleep 0.1; done; exit 7' \
        > "$work/$1.out" 2> "$work/$1.err"
    echo $? > "$work/$1.status"
}
if [ -s "$work/bwrap" ]; then
    same_run docker
    same_run local
    status=0
    for part in status out err; do
        diff "$work/docker.$part" "$work/local.$part" || status=1
    done > "$work/differences"
    grep -qx 7 "$work/docker.status" && grep -q "it's \$A /tmp .*\\\\0" "$work/docker.out" || status=1
    point 'one command line of host-sim run does the same on docker and local' $status "$work/differences"
fi
for seed in 1 2 3 4 5; do
    on_docker "shuffled-$seed" '' --level 2 --shuffle "$seed"
done

status=0
tests/long/agree.py "$work"/shuffled-*.json > "$work/differences" || status=$?
point 'five orders agree on every case' $status "$work/differences"
echo "1..$count"
