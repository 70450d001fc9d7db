# Sourced by the long tests that freeze, kill or reconfigure an engine: one of their own, beside the
# shared ones, in a folder and on a bridge of its own.
# shellcheck shell=bash

# shellcheck source=tests/packages.sh
. tests/packages.sh

export SPROV_ENGINES=/var/tmp/sprov-own SPROV_BRIDGE_PREFIX=brown SPROV_BRIDGE_NET=10
# Where both the engine and we see it, so that sandboxes are reached by socket.
export XDG_STATE_HOME=$SPROV_ENGINES/shared/state

# own_engine NAME ARGUMENT...: brings it up anew with these arguments for dockerd and sets
# DOCKER_HOST; what the shared engine of that name has made already is copied.
own_engine() {
    local name=$1 from=/var/tmp/sprov-engines
    shift
    as_root mkdir -p "$SPROV_ENGINES/$name" "$SPROV_ENGINES/cache"
    if [ ! -d "$SPROV_ENGINES/$name/root" ] && [ -d "$from/$name/root" ]; then
        as_root cp -a "$from/$name/root" "$SPROV_ENGINES/$name/root"
    fi
    [ ! -d "$from/cache" ] || as_root cp -an "$from/cache/." "$SPROV_ENGINES/cache/"
    tests/engines/down "$name"
    DOCKER_HOST=$(tests/engines/up "$name" -- "$@") || return 1
    export DOCKER_HOST
}

# own_engine_pid NAME
own_engine_pid() {
    cat "$SPROV_ENGINES/$1/run/pid"
}

# free_port: one of the loopback that nobody listens on now.
free_port() {
    python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# check NAME COMMAND...: one line of TAP.
count=0
check() {
    local name=$1 verdict=ok
    shift
    count=$((count + 1))
    "$@" || verdict='not ok'
    echo "$verdict $count - $name"
}

# own_engine_restart NAME: dockerd is killed, its containerd with it, and both come back in the mount
# namespace where the containers are, which see nothing of it until then. Needs root.
own_engine_restart() {
    local name=$1 dir=$SPROV_ENGINES/$1 pid containerd arguments waited
    pid=$(own_engine_pid "$name")
    containerd=$(cat "$dir/exec/containerd/containerd.pid")
    mapfile -d '' arguments < "/proc/$pid/cmdline"
    exec 7< "/proc/$pid/root" 8< "/proc/$pid/ns/mnt"
    kill -KILL "$pid"
    while grep -q '^State:.[^Z]' "/proc/$pid/status" 2> /dev/null; do sleep 0.05; done
    # It ends with its dockerd, but the next one would take it for alive until then, and wait for it in vain.
    for ((waited = 0; waited < 200; waited++)); do
        [ -e "/proc/$containerd" ] || break
        sleep 0.05
    done
    sleep "${ENGINE_DOWN_FOR:-0.5}"
    rm -f "$dir/run/pid"
    env -u TMPDIR -u DOCKER_HOST PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        setsid nsenter --mount=/proc/self/fd/8 --root=/proc/self/fd/7 --wd=/proc/self/fd/7 -- "${arguments[@]}" \
        < /dev/null >> "$dir/log" 2>&1 7>&7 8>&8 &
    exec 7<&- 8<&-
    for ((waited = 0; waited < 300; waited++)); do
        [ "$(curl -s -m 5 --unix-socket "$dir/run/docker.sock" http://engine/_ping)" != OK ] || return 0
        sleep 0.2
    done
    return 1
}
