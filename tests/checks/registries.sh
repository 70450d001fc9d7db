#!/bin/bash
# registries.sh: images of a private registry, as base of a template and of a sandbox; prints TAP. Needs
# the engine of DOCKER_HOST on this machine, with busybox:latest.
# shellcheck disable=SC2016 # commands are expanded where they run
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/engines/lib.sh
. tests/engines/lib.sh
# shellcheck source=tests/checks/tap.bash
. tests/checks/tap.bash

if [ -z "${DOCKER_HOST:-}" ]; then
    echo '1..0 # SKIP DOCKER_HOST is not set'
    exit 0
fi
need_packages docker-registry python3

host=$PWD/build/host-sim/host-sim
open=(--provider "$PWD/build/plugin/docker/docker.so")
work=$(mktemp -d)
password=p+w/$$-$(date +%s%N)
box=registries-$$
made=()
children=()

cleanup() {
    local image
    [ ${#children[@]} -eq 0 ] || kill "${children[@]}"
    "$host" rm "${open[@]}" "$box" 2> "$work/gone"
    for image in "${made[@]}"; do
        engine_api "/images/$image?noprune=1" -X DELETE -o "$work/gone"
    done
    rm -rf "$work"
}
trap cleanup EXIT

# ---------------------------------------------------------------------------- the registry

listens() { # PORT
    local waited
    for ((waited = 0; waited < 300; waited++)); do
        ! (: < "/dev/tcp/127.0.0.1/$1") 2> "$work/gone" || return 0
        sleep 0.1
    done
    return 1
}

free_port() {
    python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

port=$(free_port)
PASSWORD=$password python3 -W ignore -c 'import crypt, os
print("robot:" + crypt.crypt(os.environ["PASSWORD"], crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16)))' > "$work/users"
printf '%s\n' 'version: 0.1' 'storage:' '  filesystem:' "    rootdirectory: $work/registry" \
    'http:' "  addr: 127.0.0.1:$port" 'auth:' '  htpasswd:' '    realm: here' "    path: $work/users" > "$work/config.yml"
docker-registry serve "$work/config.yml" > "$work/registry.log" 2>&1 &
children+=($!)
listens "$port" || die "the registry does not listen: $(tail -n 3 "$work/registry.log")"

# An image with a layer that the engine will not have any more.
printf '{"baseImage":"busybox:latest","operations":[{"method":"runCmd","args":["echo %s; head -c 3000000 /dev/urandom > /noise"]}]}' \
    "$work" > "$work/noise.json"
noise=$("$host" build "${open[@]}" "$work/noise.json" 2> "$work/gone") || die "no image to offer: $(cat "$work/gone")"

# offer NAME: an image that only the registry has.
offer() {
    local auth
    auth=$(printf '{"username":"robot","password":"%s"}' "$password" | base64 -w0 | tr '+/' '-_')
    engine_api "/images/$noise/tag?repo=127.0.0.1:$port/$1&tag=latest" -X POST -o "$work/gone"
    engine_api "/images/127.0.0.1:$port/$1/push?tag=latest" -X POST -H "X-Registry-Auth: $auth" -o "$work/push"
    engine_api "/images/127.0.0.1:$port/$1:latest?noprune=1" -X DELETE -o "$work/gone"
    ! grep -q '"error"' "$work/push" || die "the registry takes no image: $(tail -n 1 "$work/push")"
}
offer base
offer other
offer box
"$host" templates rm "${open[@]}" "$noise"

# --------------------------------------------------------------------------------- builds

# definition FILE IMAGE: a template that nobody else has.
definition() {
    printf '{"baseImage":"127.0.0.1:%s/%s:latest","operations":[{"method":"runCmd","args":["echo %s > /made"]}]}' \
        "$port" "$2" "$work" > "$work/$1"
}

# build FILE ARGUMENT...: output in last.out and last.err.
build() {
    local file=$work/$1 status=0
    shift
    "$host" build "${open[@]}" --log-level debug "$@" "$file" > "$work/last.out" 2> "$work/last.err" || status=$?
    cat "$work/last.err" >> "$work/told"
    [ $status -ne 0 ] || made+=("$(cat "$work/last.out")")
    return $status
}

fails_with() { # WORDS FILE ARGUMENT...
    local words=$1
    shift
    ! build "$@" && grep -qF -- "$words" "$work/last.err"
}

export RIGHT="robot:$password" WRONG=robot:wrong
right=(--login "127.0.0.1:$port=env:RIGHT")
definition base.json base
definition other.json other
(
    for _ in $(seq 600); do
        cat /proc/[0-9]*/cmdline 2> "$work/gone" | tr '\0' ' '
        sleep 0.1
    done > "$work/processes"
) &
watcher=$!
check 'without a login the base image is not to be had' fails_with "127.0.0.1:$port/other" other.json
check 'nor with a wrong one' fails_with "127.0.0.1:$port/other" other.json --login "127.0.0.1:$port=env:WRONG"
check 'nor with one for another registry' \
    fails_with "127.0.0.1:$port/other" other.json --login "127.0.0.1=env:RIGHT"
check 'with it the template is built' build base.json "${right[@]}" --progress json
check 'and what comes of the base image is told' grep -q '"type":"build-layer".*"layer":".*sha256:' "$work/last.err"
printf 'robot:%s\n' "$password" > "$work/file"
check 'with one of a file, asking for a newer base, too' \
    build other.json --login "127.0.0.1:$port=file:$work/file" -o '{"pull":true}'

# ------------------------------------------------------------------------------ a sandbox

options='{"image":"127.0.0.1:'$port'/box:latest","supervisor":"off"}'
starts() {
    "$host" start "${open[@]}" --log-level debug --id "$box" -o "$options" "$@" > "$work/last.out" 2> "$work/last.err"
    local status=$?
    cat "$work/last.err" >> "$work/told"
    return $status
}
refused() { ! starts "$@" && grep -qF "127.0.0.1:$port/box:latest" "$work/last.err"; }
check 'a sandbox does not start from it without a login' refused
check 'nor with a wrong one' refused --login "127.0.0.1:$port=env:WRONG"
check 'and with it does' starts "${right[@]}"
made+=("127.0.0.1:$port/base:latest" "127.0.0.1:$port/other:latest" "127.0.0.1:$port/box:latest")

kill "$watcher"
wait "$watcher" 2> "$work/gone"
nothing_found() { # PATH...
    local what
    for what in "$password" "$(printf 'robot:%s' "$password" | base64 -w0 | cut -c8-30)" \
        "$(printf %s "$password" | sed 's|/|%2F|g; s|+|%2B|g')"; do
        ! grep -rqF -- "$what" "$@" || return 1
    done
}
check 'the password is in nothing that we told' nothing_found "$work/told"
check 'nor in any process list' nothing_found "$work/processes"
echo "1..$count"
