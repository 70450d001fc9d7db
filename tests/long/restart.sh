#!/bin/bash
# restart.sh: a machine that restarts, in effect: an engine of its own and its containers are killed,
# no host lives on, and the folder of sockets is gone. The next start works, by socket. Prints TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/engines/lib.sh
. tests/engines/lib.sh

host=$PWD/build/host-sim/host-sim
others=$engines
own=$(mktemp -d /var/tmp/sprov-re-XXXX)
export SPROV_ENGINES=$own SPROV_BRIDGE_PREFIX=brre SPROV_BRIDGE_NET=10
count=0

cleanup() {
    tests/engines/down 26.1
    rm -rf "$own"
}
trap cleanup EXIT

check() { # NAME CONDITION...
    local name=$1 verdict=ok
    shift
    count=$((count + 1))
    "$@" || verdict='not ok'
    echo "$verdict $count - $name"
}

hs() { # COMMAND ARGUMENT...
    local command=$1
    shift
    timeout 120 "$host" "$command" --provider "$PWD/build/plugin/docker/docker.so" \
        --config "{\"host\":\"$address\",\"runtimeDir\":\"$own/shared/run\"}" "$@"
}

says() { # TEXT COMMAND ARGUMENT...
    local text=$1 got
    shift
    got=$(hs "$@" 2>&1)
    [[ $got == *$text* ]] || { echo "# $* said: $got"; false; }
}

by_socket() {
    says hello exec --id restarted -c 'echo hello' -o '{"transport":"socket"}'
}

# The root and the base images of the usual engine serve this one as well.
chmod 755 "$own"
mkdir "$own/26.1"
[ ! -d "$others/26.1/root" ] || ln -s "$others/26.1/root" "$own/26.1/root"
[ ! -d "$others/cache" ] || ln -s "$others/cache" "$own/cache"
address=$(tests/engines/up 26.1) || exit 1

check 'a sandbox is reached by socket' says created start --id restarted \
    -o '{"image":"debian:bookworm-slim","transport":"socket"}'
check 'it runs a command' by_socket
check 'it keeps a file' says '' exec --id restarted -c 'echo kept > /kept'

engines=$own
select_engine 26.1
kill -KILL "$(engine_pid)"
kill_rest
unmount_rest
rm -rf "$own/shared/run"
address=$(tests/engines/up 26.1) || exit 1

check 'the next command starts it again, by socket' by_socket
check 'its file is there' says kept exec --id restarted -c 'cat /kept'
check 'it is removed' says '' rm restarted
check 'nothing is left on the host' test -z "$(ls "$own/shared/run")"
echo "1..$count"
