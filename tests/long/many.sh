#!/bin/bash
# many.sh: 300 sandboxes created, used once and destroyed, 16 at a time, by each transport: nothing is
# left over on the engine or on this machine. Prints TAP. Needs the engine of DOCKER_HOST.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/engines/lib.sh
. tests/engines/lib.sh

count=0
base=/var/tmp
[ ! -w "$shared" ] || base=$shared
run=$(mktemp -d "$base/.many-XXXX")
trap 'rm -rf "$run"' EXIT

check() { # NAME CONDITION...
    local name=$1 verdict=ok
    shift
    count=$((count + 1))
    "$@" || verdict='not ok'
    echo "$verdict $count - $name"
}

# What there is of us on the engine, beside the program's own volumes.
list_ours() {
    engine_api '/containers/json?all=1' | grep -oE '"sprov.owner":"[^"]*"' | sort
    engine_api /volumes | grep -oE '"Name":"[^"]*"' | grep -v sprov-supervisor | sort
}

# use_many SUBJECT: the subject itself checks that it was reached by the transport in its name.
use_many() {
    echo 'many 300 16' | timeout 3000 build/tests/bench/bench "$1" "${DOCKER_HOST#unix://}" \
        debian:bookworm-slim build/plugin/docker/docker.so "$run" > "$run/out"
}

ninja -C build tests/bench/bench > /dev/null || exit 1
for subject in sprov-socket sprov-stream; do
    before=$(list_ours)
    check "300 sandboxes by $subject are made, used once and destroyed" use_many "$subject"
    rm -f "$run/out"
    check "no container and no volume of $subject is left" test "$before" = "$(list_ours)"
    check "no folder of $subject is left" test -z "$(ls -A "$run")"
done
echo "1..$count"
