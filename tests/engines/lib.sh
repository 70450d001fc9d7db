# Sourced by up, down, images and setup.sh: where a private engine lives, whether it runs, how to talk to it.
# shellcheck shell=bash

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/packages.sh
. "$here/../packages.sh"

engines=${SPROV_ENGINES:-/var/tmp/sprov-engines}
cache=$engines/cache
shared=$engines/shared

# become_root ARGUMENT...: runs this script again through sudo unless it is root already.
become_root() {
    [ "$(id -u)" != 0 ] || return 0
    local keep=() variable
    for variable in SPROV_ENGINES SPROV_BRIDGE_PREFIX SPROV_BRIDGE_NET DOCKER_HOST \
        DOCKER_TLS_VERIFY DOCKER_CERT_PATH http_proxy https_proxy no_proxy; do
        [ -z "${!variable-}" ] || keep+=("$variable=${!variable}")
    done
    command -v sudo > /dev/null || die "root is needed: run this as root, or install sudo"
    exec sudo env "${keep[@]}" "$0" "$@"
}

# The folders of all engines. They are root's: scripts that run as root trust what lies in them.
prepare_folders() {
    umask 022
    mkdir -p "$engines"
    [ "$(stat -c %u "$engines")" = 0 ] || die "$engines is not root's: remove it, or set SPROV_ENGINES"
    mkdir -p "$cache" "$shared"
    chmod 1777 "$shared"
}

# select_engine NAME: sets dir, socket, suite, api, bridge and address for the functions below.
# shellcheck disable=SC2034 # up uses them
select_engine() {
    local number
    case ${1-} in
    26.1) suite=trixie api=1.45 number=26 ;;
    20.10) suite=bookworm api=1.41 number=20 ;;
    *) die "unknown engine '${1-}': 26.1 or 20.10" ;;
    esac
    case $engines in
    /*) ;;
    *) die "SPROV_ENGINES must be an absolute path, not '$engines'" ;;
    esac
    dir=$engines/$1
    socket=$dir/run/docker.sock
    bridge=${SPROV_BRIDGE_PREFIX:-br}$number
    address=${SPROV_BRIDGE_NET:-172}.$number.0.1/16
    # The engine's longest socket path lies below exec/; the kernel takes 107 bytes.
    local longest=$dir/exec/containerd/containerd-debug.sock
    [ ${#longest} -le 107 ] || die "$engines is too long for unix sockets: set SPROV_ENGINES to a shorter path"
}

# lock NAME: held until this script ends; whatever outlives the script must close descriptor 9.
lock() {
    exec 9> "$engines/$1.lock"
    flock 9
}

# engine_pid: prints the process id of the selected engine when it runs.
engine_pid() {
    local pid
    pid=$(cat "$dir/run/pid" 2> /dev/null) || return 1
    grep -qszxF -e "$dir/data" "/proc/$pid/cmdline" || return 1
    echo "$pid"
}

# engine_api PATH [CURL-ARGUMENT...]: one request to the engine that DOCKER_HOST names.
engine_api() {
    local path=$1 target=() base
    shift
    case $DOCKER_HOST in
    unix://*) target=(--unix-socket "${DOCKER_HOST#unix://}") base=http://engine ;;
    tcp://* | http://*)
        base=http://${DOCKER_HOST#*://}
        if [ -n "${DOCKER_TLS_VERIFY-}" ]; then
            local certs=${DOCKER_CERT_PATH:-$HOME/.docker}
            target=(--cacert "$certs/ca.pem" --cert "$certs/cert.pem" --key "$certs/key.pem")
            base=https://${DOCKER_HOST#*://}
        fi
        ;;
    *) die "cannot make requests to DOCKER_HOST=$DOCKER_HOST: a unix:// or tcp:// address is needed" ;;
    esac
    curl -sS --noproxy '*' "${target[@]}" "$@" "$base$path"
}

# engine_answers HOST
engine_answers() {
    [ "$(DOCKER_HOST=$1 engine_api /_ping -m 5 2> /dev/null)" = OK ]
}

# Ends what belongs to the selected engine: its containers and networks, the daemon by its process
# id, then whatever a crash left of it.
stop_engine() {
    local pid id
    if pid=$(engine_pid); then
        for id in $(list_ids '/containers/json?all=1'); do
            remove "/containers/$id?force=1&v=1"
        done
        for id in $(list_ids '/networks?filters=%7B%22type%22%3A%5B%22custom%22%5D%7D'); do
            remove "/networks/$id"
        done
        kill "$pid" 2> /dev/null || true
        wait_gone "$pid" || say "process $pid does not stop, killing it"
    fi
    kill_rest
    unmount_rest
    delete_bridge
    rm -f "$dir/run/pid" "$socket"
}

# list_ids PATH: the identities in an answer of the selected engine.
list_ids() {
    DOCKER_HOST=unix://$socket engine_api "$1" -m 10 | grep -oE '"Id":"[0-9a-f]{64}"' | cut -d'"' -f4 || true
}

remove() {
    DOCKER_HOST=unix://$socket engine_api "$1" -X DELETE -m 30 -o /dev/null || true
}

# wait_gone PID: a process that nobody reaped counts as gone.
wait_gone() {
    local waited
    for ((waited = 0; waited < 400; waited++)); do
        [ -n "$(tr -d '\0' 2> /dev/null < "/proc/$1/cmdline")" ] || return 0
        sleep 0.1
    done
    return 1
}

# Every process with an argument that names the engine's own folders (daemon, containerd, shims),
# and the containers, which are the children of the shims.
kill_rest() {
    local pid
    # shellcheck disable=SC2013 # one process id a line
    for pid in $(grep -lszE "(^|=)$dir/(exec|data)(/|\$)" /proc/[0-9]*/cmdline | cut -d/ -f3); do
        pkill -KILL -P "$pid" || true
        kill -KILL "$pid" 2> /dev/null || true
        wait_gone "$pid" || true
    done
}

unmount_rest() {
    local point
    cut -d' ' -f2 /proc/self/mounts | sort -r | while read -r point; do
        case $point in
        "$dir"/*) umount -l "$point" ;;
        esac
    done
}

# The engine's bridge, if it is this folder's, with the rules of the packet filter left for it.
delete_bridge() {
    local table rule
    [ "$(cat "/sys/class/net/$bridge/ifalias" 2> /dev/null)" = "$dir" ] || return 0
    for table in nat filter raw; do
        iptables -t "$table" -S 2> /dev/null | grep -E -e "-[io] $bridge( |$)| -s ${address%1/16}" | sed 's/^-A/-D/' |
            while read -r rule; do
                # shellcheck disable=SC2086 # a rule is a list of words
                iptables -t "$table" $rule 2> /dev/null || true
            done || true
    done
    ip link delete "$bridge"
}
