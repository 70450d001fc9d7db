# Sourced by the checks of repository templates: a folder of work, builds and their removal. Prints the
# TAP plan when there is no engine.
# shellcheck shell=bash

# shellcheck source=tests/engines/lib.sh
. tests/engines/lib.sh
# shellcheck source=tests/checks/tap.bash
. tests/checks/tap.bash

host=$PWD/build/host-sim/host-sim
open=(--provider "$PWD/build/plugin/docker/docker.so")
network=(-o '{"network":"host"}') # the server is on loopback
work=$(mktemp -d)
made=()

cleanup() {
    for ((i = ${#made[@]} - 1; i >= 0; i--)); do
        "$host" templates rm "${open[@]}" "${made[i]}" 2> "$work/err" || cat "$work/err" >&2
    done
    rm -rf "$work"
}
trap cleanup EXIT

if [ -z "${DOCKER_HOST:-}" ]; then
    echo '1..0 # SKIP DOCKER_HOST is not set'
    exit 0
fi

# --------------------------------------------------------------------------------- building

# build FILE ARGUMENT...: sets id; output in last.out and last.err.
build() {
    local file=$work/$1 status=0
    shift
    "$host" build "${open[@]}" "${network[@]}" "$@" "$file" > "$work/last.out" 2> "$work/last.err" || status=$?
    id=$(cat "$work/last.out")
    [ -z "$id" ] || made+=("$id")
    return $status
}

fails_with() { # WORDS FILE ARGUMENT...
    local words=$1
    shift
    ! build "$@" && grep -qF -- "$words" "$work/last.err"
}

# build_base COMMAND...: an image that these made, as a template for the others; sets base
build_base() {
    python3 -c 'import json, sys
print(json.dumps({"baseImage": "debian:bookworm-slim",
                  "operations": [{"method": "runCmd", "args": [command]} for command in sys.argv[1:]]}))' "$@" > "$work/base.json"
    build base.json || cat "$work/last.err"
    base=$id
}

repository() { # FILE PATH MEMBERS
    printf '{"repository":{"cloneUrl":"%s/%s","baseImage":"%s"%s}}' "$url" "$2" "$base" "${3:+,$3}" > "$work/$1"
}
in_image() { # COMMAND: what it prints in the image's directory
    "$host" run "${open[@]}" -o "{\"template\":\"$id\"}" -c "$1" 2> "$work/gone"
}
is_at() { # SHA FILE
    build "$2" && [ "$(in_image 'git rev-parse HEAD; pwd')" = "$1"$'\n/workspace/app' ]
}
