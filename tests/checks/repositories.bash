# Sourced by the checks of repository templates: a folder of work, a Git server with a CA of its own and
# a token for what is private, builds, and their removal. Prints the TAP plan when there is no engine.
# shellcheck shell=bash

# shellcheck source=tests/engines/lib.sh
. tests/engines/lib.sh
# shellcheck source=tests/checks/tap.bash
. tests/checks/tap.bash

host=$PWD/build/host-sim/host-sim
open=(--provider "$PWD/build/plugin/docker/docker.so")
network=(-o '{"network":"host"}') # the server is on loopback
work=$(mktemp -d)
TOKEN=tok-$$-$(date +%s%N)
export TOKEN
made=()
server=

cleanup() {
    [ -z "$server" ] || kill "$server"
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

# -------------------------------------------------------------------------- repositories

git() {
    command git -c init.defaultBranch=main -c user.name=T -c user.email=t@example.com -C "$work/tree" "$@" \
        > "$work/git.out" 2>&1 || cat "$work/git.out" >&2
}
commit() { # TEXT: sets sha
    echo "$1" > "$work/tree/file"
    git add file
    git commit -m "$1"
    sha=$(command git -C "$work/tree" rev-parse HEAD)
}
mkdir "$work/tree" "$work/served" "$work/served/private" "$work/served/silent" "$work/served/lfs"
git init

# serve: the repositories below $work/served; sets url
serve() {
    local port
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 \
        -keyout "$work/key" -out "$work/cert" 2> "$work/openssl.out"
    export GIT_SSL_CAINFO=$work/cert
    mkfifo "$work/port"
    tests/checks/git-server.py "$work/served" "$work/cert" "$work/key" > "$work/port" 2> "$work/server.err" &
    server=$!
    read -r port < "$work/port"
    url=https://127.0.0.1:$port
}

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

# build_base OPERATIONS: an image that trusts the server, as a template for the others; sets base
build_base() {
    local pem
    pem=$(sed ':a;N;$!ba;s/\n/\\\\n/g' "$work/cert")
    printf '{"baseImage":"debian:bookworm-slim","operations":[%s{"method":"runCmd","args":["printf %%b \\"%s\\" > /ca.pem && git config --system http.sslCAInfo /ca.pem"]}]}' \
        "$1" "$pem" > "$work/base.json"
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
