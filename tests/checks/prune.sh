#!/bin/bash
# prune.sh: what host-sim prune takes and what it leaves, beside things of others; prints TAP. Needs
# the engine of DOCKER_HOST, with debian:bookworm-slim and busybox:latest. It prunes only sandboxes
# with a label of its own and folders of its own runtimeDir; all else is a dry run, since others use
# the engine (tests/long/prune.sh has one for itself).
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

host=$PWD/build/host-sim/host-sim
work=$(mktemp -d)
run=prune-$$-$(date +%s)
runtime=$(mktemp -d "${XDG_STATE_HOME:-$HOME}/prune-XXXXXX")
open=(--provider "$PWD/build/plugin/docker/docker.so" --config "{\"runtimeDir\":\"$runtime\"}")
containers=()
children=()

cleanup() {
    local id
    [ ${#children[@]} -eq 0 ] || kill "${children[@]}" 2> "$work/err"
    for id in one two three four five six; do
        "$host" rm "${open[@]}" "$run-$id" 2> "$work/err"
    done
    for id in "${containers[@]}"; do
        engine_api "/containers/$id?force=1&v=1" -X DELETE -o "$work/out"
    done
    engine_api "/volumes/sprov-supervisor-own-$run" -X DELETE -o "$work/out"
    engine_api "/volumes/sprov-supervisor-$run" -X DELETE -o "$work/out"
    engine_api "/volumes/$run-named" -X DELETE -o "$work/out"
    engine_api "/images/$run:copy" -X DELETE -o "$work/out"
    rm -rf "$work" "$runtime"
}
trap cleanup EXIT

# As long as it has execs, also a relay of a host that is gone may yet come up in it.
has_execs() { engine_api "/containers/$1/json" | grep -q '"ExecIDs":\['; }

# start NAME [OPTIONS-MEMBERS]: a sandbox whose host is gone, and which has noticed that.
start() {
    local i
    "$host" start "${open[@]}" --id "$run-$1" \
        -o "{\"image\":\"debian:bookworm-slim\",\"labels\":{\"run\":\"$run\"}${2:+,$2}}" > "$work/out" 2>&1 ||
        cat "$work/out"
    for ((i = 0; i < 100; i++)); do
        has_execs "$run-$1" || break
        sleep 0.1
    done
    for ((i = 0; i < 100; i++)); do
        prune --orphans --dry-run | grep -F "\"id\":\"$run-$1\"" | grep -qF '"reason":"in-use"' || break
        sleep 0.1
    done
}

prune() { # ARGUMENT...: of the sandboxes of this run; prints what it tells
    "$host" prune "${open[@]}" --label "run=$run" --json "$@"
}

tells() { # NAME TEXT COMMAND...: the object of that name has the text
    local name=$1 text=$2
    shift 2
    "$@" > "$work/told" || return 1
    grep -F -- "$name\"" "$work/told" | grep -qF -- "$text" || { sed 's/^/# /' "$work/told"; false; }
}

tells_not() { # NAME COMMAND...
    local name=$1
    shift
    "$@" > "$work/told" || return 1
    ! grep -F -- "$name" "$work/told" | sed 's/^/# /' | grep .
}

is_there() { # NAME
    "$host" ls "${open[@]}" --json | grep -qF "\"id\":\"$run-$1\""
}

is_gone() { ! is_there "$1"; }

fails_to() { ! "$@"; }

exec_in() { # NAME ARGUMENT...
    local name=$1
    shift
    "$host" exec "${open[@]}" --id "$run-$name" "$@"
}

# create JSON: a container by hand; prints its id
create() {
    engine_api /containers/create -X POST -H 'Content-Type: application/json' -d "$1" |
        sed -n 's/.*"Id":"\([0-9a-f]*\)".*/\1/p'
}

has_container() {
    engine_api "/containers/$1/json" -o "$work/out" -w '%{http_code}' | grep -q 200
}

# ------------------------------------------------------------------------------ who owns it

start one
start two
"$host" stop "${open[@]}" "$run-two"
check 'a sandbox stays unless more is asked for' tells_not "$run" prune
check 'a dry run tells of one whose host is gone' tells "$run-one" '"reason":"dry-run"' prune --orphans --dry-run
check 'and removes nothing' is_there one
check 'no age, no orphan' tells_not "$run" prune --orphans --older-than 1h
check 'a younger one is not told' tells_not "$run" prune --older-than 1h
check 'one that runs is removed' tells "$run-one" '"removed":true' prune --orphans
check 'and so was one that was stopped' tells_not "$run" prune --orphans
check 'they are gone' is_gone two
check 'with their folders' [ -z "$(ls "$runtime")" ]

# A host that lives: it holds a sandbox of its own, and nothing else connects.
mkfifo "$work/input"
sleep 600 > "$work/input" &
children+=($!)
"$host" run "${open[@]}" --id "$run-one" -o "{\"image\":\"debian:bookworm-slim\",\"labels\":{\"run\":\"$run\"}}" \
    -- cat < "$work/input" > "$work/out" 2>&1 &
living=$!
children+=("$living")
until is_there one || ! kill -0 "$living"; do sleep 0.1; done
check 'one whose host lives is no orphan' tells_not "$run" prune --orphans
check 'and is kept whatever its age' tells "$run-one" '"reason":"owned"' prune --older-than 0s
kill -KILL "$living" "${children[0]}"
wait "${children[@]}" 2> "$work/err"
children=()
# What was used may be so for a moment longer.
gone_soon() {
    local i
    for ((i = 0; i < 100; i++)); do
        prune --orphans > "$work/told" || return 1
        is_there one || return 0
        sleep 0.2
    done
    return 1
}
check 'until it is killed' gone_soon

# ---------------------------------------------------------------------------------- in use

start one
process=$(exec_in one --detach -c 'sleep 300')
check 'a process that nobody waits for is a use' tells "$run-one" '"reason":"in-use"' prune --orphans
"$host" kill "${open[@]}" --id "$run-one" "$process"
check 'until it ended' gone_soon

start one '"transport":"stream"'
"$host" exec "${open[@]}" --id "$run-one" -c 'sleep 300' > "$work/out" 2>&1 &
children+=($!)
runs() { [ "$(exec_in one -c 'cat /proc/[0-9]*/cmdline' | tr '\0' ' ' | grep -c 'sleep 300')" -gt 0 ]; }
until runs; do sleep 0.1; done
check 'a command by stream is one' tells "$run-one" '"reason":"in-use"' prune --orphans
kill "${children[@]}"
wait "${children[@]}" 2> "$work/err"
children=()
check 'until its host is gone' gone_soon

start one '"user":"1000:1000"'
process=$(exec_in one --user root --detach -c 'sleep 300')
check 'a process of another user is one' tells "$run-one" 'by user 0' prune --orphans
"$host" kill "${open[@]}" --id "$run-one" "$process"
check 'until it ended, too' gone_soon

start one '"supervisor":"off"'
container=$(engine_api "/containers/$run-one/json" | sed -n 's/.*"Id":"\([0-9a-f]\{64\}\)".*/\1/p')
exec=$(engine_api "/containers/$container/exec" -X POST -H 'Content-Type: application/json' -d '{"Cmd":["sleep","300"]}' |
    sed -n 's/.*"Id":"\([0-9a-f]*\)".*/\1/p')
engine_api "/exec/$exec/start" -X POST -H 'Content-Type: application/json' -d '{"Detach":true}' -o "$work/out"
check 'an exec of the engine is one where there is no supervisor' tells "$run-one" '"reason":"in-use"' prune --orphans
engine_api "/containers/$container/stop?t=0" -X POST -o "$work/out"
engine_api "/containers/$container/start" -X POST -o "$work/out"
check 'without one it is removed' tells "$run-one" '"removed":true' prune --orphans

start one
engine_api "/containers/$run-one/pause" -X POST -o "$work/out"
check 'of one that is paused nobody can tell' tells "$run-one" 'it is paused' prune --orphans
engine_api "/containers/$run-one/unpause" -X POST -o "$work/out"
check 'afterwards it is removed' tells "$run-one" '"removed":true' prune --orphans

# --------------------------------------------------------------- what belongs to a sandbox

start one "\"capAdd\":[\"SYS_ADMIN\"],\"volumes\":{\"$run-named\":\"/named\"}"
own=$(engine_api "/containers/$run-one/json" | grep -o 'sprov-supervisor-own-[0-9a-f]*' | head -n 1)
has_volume() { [ -n "$1" ] && engine_api "/volumes/$1" -o "$work/out" -w '%{http_code}' | grep -q 200; }
check 'one that may mount has a volume of its own' has_volume "$own"
check 'it is removed' tells "$run-one" '"removed":true' prune --orphans
check 'which goes with it' fails_to has_volume "$own"
check 'and the user'\''s volumes stay' has_volume "$run-named"

start one '"capAdd":["SYS_ADMIN"]'
own=$(engine_api "/containers/$run-one/json" | grep -o 'sprov-supervisor-own-[0-9a-f]*' | head -n 1)
in_use=$(create "{\"Image\":\"busybox:latest\",\"HostConfig\":{\"Binds\":[\"$own:/x\"]}}")
check 'one that somebody mounts is told' tells "$run-one" "$own" prune --orphans
engine_api "/containers/$in_use?force=1" -X DELETE -o "$work/out"
engine_api "/volumes/$own" -X DELETE -o "$work/out"

# ---------------------------------------------------------------------- things of others

start five
engine_api "/commit?container=$run-five&repo=$run&tag=copy" -X POST -o "$work/out"
copy=$(create "{\"Image\":\"$run:copy\",\"Entrypoint\":[\"sleep\"],\"Cmd\":[\"1\"]}")
reference=$(create "{\"Image\":\"busybox:latest\",\"Labels\":{\"mastra.sandbox\":\"true\",\"mastra.sandbox.id\":\"$run-reference\",\"run\":\"$run\"}}")
stranger=$(create "{\"Image\":\"busybox:latest\",\"Labels\":{\"run\":\"$run\"}}")
elsewhere=$(create "{\"Image\":\"busybox:latest\",\"Labels\":{\"run\":\"$run\",\"mastra.sandbox.id\":\"$run-elsewhere\",\"sprov.version\":\"0\",\"sprov.created\":\"2020-01-01T00:00:00Z\",\"sprov.owner\":\"0b00b00b-0000-4000-8000-000000000000:7:7:7\"}}")
containers+=("$copy" "$reference" "$stranger" "$elsewhere")
check 'one of another boot or machine is no orphan' tells_not "$run-elsewhere" prune --orphans
check 'but has an age' tells "$run-elsewhere" '"owner":"unknown"' prune --older-than 1d --dry-run
prune --orphans > "$work/told"
check 'the orphan beside them is gone' fails_to has_container "$run-five"
check 'a container of an image made of it stays' has_container "$copy"
check 'and so does one of the reference' has_container "$reference"
check 'and one of a stranger' has_container "$stranger"
check 'and one that might be owned elsewhere' has_container "$elsewhere"
check 'which goes by its age' tells "$run-elsewhere" '"removed":true' prune --older-than 1d

for container in "${containers[@]}"; do
    engine_api "/containers/$container?force=1&v=1" -X DELETE -o "$work/out"
done
containers=()

# ----------------------------------------------------------------------------- left-overs

me="$(cat /proc/sys/kernel/random/boot_id)"
namespace=$(readlink /proc/self/ns/pid | tr -dc '0-9')
sleep 0 &
dead=$!
wait "$dead"
labels="\"sprov.version\":\"0\",\"sprov.created\":\"2020-01-01T00:00:00Z\",\"sprov.owner\":\"$me:$dead:1:$namespace\""
helper=$(create "{\"Image\":\"busybox:latest\",\"Labels\":{$labels,\"sprov.helper\":\"v\"}}")
like_it=$(create "{\"Image\":\"busybox:latest\",\"Labels\":{$labels}}")
containers+=("$helper" "$like_it")
volume() { # NAME LABELS
    engine_api /volumes/create -X POST -H 'Content-Type: application/json' -d "{\"Name\":\"$1\",\"Labels\":{$2}}" -o "$work/out"
}
volume "sprov-supervisor-own-$run" "$labels,\"sprov.supervisor\":\"0\""
volume "sprov-supervisor-$run" "$labels,\"sprov.supervisor\":\"$run\""
volume "$run-named" "$labels"
all() { "$host" prune "${open[@]}" --json --dry-run "$@"; }
helper_name=$(engine_api "/containers/$helper/json" | sed -n 's/.*"Name":"\/\([^"]*\)".*/\1/p')
like_name=$(engine_api "/containers/$like_it/json" | sed -n 's/.*"Name":"\/\([^"]*\)".*/\1/p')
check 'a helper that was left is found' tells "$helper_name" '"kind":"helper"' all
check 'what only has our labels is none' tells_not "$like_name" all
check 'a volume of a sandbox that is gone is found' tells "sprov-supervisor-own-$run" '"kind":"volume"' all
check 'and one of another build' tells "sprov-supervisor-$run" '"kind":"volume"' all
check 'a volume of another name is none' tells_not "$run-named" all
start one
build=$(engine_api "/containers/$run-one/json" | grep -o 'sprov-supervisor-[0-9a-f]\{16\}' | head -n 1)
prune --orphans > "$work/told"
check 'the volume of this build stays' tells_not "${build:?}" all
start one
in_use=$(create "{\"Image\":\"busybox:latest\",\"HostConfig\":{\"Binds\":[\"sprov-supervisor-$run:/x\"]}}")
containers+=("$in_use")
check 'one that a container mounts is in use' tells_not "sprov-supervisor-$run" all --only volume

folders() { "$host" prune "${open[@]}" --json --only folder "$@"; }
used=$(ls "$runtime")
prefix=${used:0:8}
mkdir "$runtime/${prefix}00000001" "$runtime/${prefix}00000002" "$runtime/0123456700000003" "$runtime/notes"
touch "$runtime/${prefix}00000001/stale"
touch -d '2 hours ago' "$runtime"/*
mkdir "$runtime/${prefix}00000004"
python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
time.sleep(300)' "$runtime/${prefix}00000002/socket" &
children+=($!)
until [ -S "$runtime/${prefix}00000002/socket" ]; do sleep 0.05; done
touch -d '2 hours ago' "$runtime/${prefix}00000002"
check 'a folder without a sandbox is found' tells "${prefix}00000001" '"reason":"dry-run"' folders --dry-run
check 'and removed' tells "${prefix}00000001" '"removed":true' folders
kept=$(cd "$runtime" && echo *)
check 'those of sandboxes, hosts, other engines and others stay, and new ones' \
    [ "$kept" = "$(printf '%s\n' "$used" "${prefix}00000002" "${prefix}00000004" 0123456700000003 notes | LC_ALL=C sort | tr '\n' ' ' | sed 's/ $//')" ]
kill "${children[@]}"
wait "${children[@]}" 2> "$work/err"
children=()
check 'a listener that died keeps none' tells "${prefix}00000002" '"removed":true' folders

# ------------------------------------------------------------------------- several at once

for name in one two three four five six; do start "$name" & done
wait
for n in 1 2; do
    prune --orphans > "$work/at-once.$n" 2>&1 &
    children+=($!)
done
both_end_well() {
    local child
    for child in "${children[@]}"; do
        wait "$child" || { sed 's/^/# /' "$work"/at-once.*; return 1; }
    done
}
check 'two at once end well' both_end_well
children=()
none_left() {
    prune --orphans > "$work/told"
    ! "$host" ls "${open[@]}" --json | grep -F "\"run\":\"$run\""
}
check 'and with a third nothing is left' none_left

# Hosts that come while it is removed find it, or make another; never an error.
comes_in_time() {
    local i status=0 came=()
    for ((i = 0; i < 4; i++)); do
        start one
        for n in 1 2 3; do
            "$host" start "${open[@]}" --id "$run-one" -o "{\"image\":\"debian:bookworm-slim\",\"labels\":{\"run\":\"$run\"}}" > "$work/start.$n" 2>&1 &
            came+=($!)
            "$host" exec "${open[@]}" --id "$run-two" -c true > "$work/gone" 2>&1
        done
        prune --orphans > "$work/told" 2>&1 || status=1
        for child in "${came[@]}"; do wait "$child" || { status=1; sed 's/^/# /' "$work"/start.*; }; done
        came=()
    done
    return $status
}
check 'who starts one meanwhile has one' comes_in_time

# --------------------------------------------------------------------------- command line

fails() { # STATUS TEXT ARGUMENT...
    local wanted=$1 text=$2
    shift 2
    "$host" "$@" "${open[@]}" > "$work/out" 2> "$work/err"
    [ $? -ne "$wanted" ] || ! grep -qF -- "$text" "$work/err" || return 0
    sed 's/^/# /' "$work/err"
    return 1
}
check 'an age without a unit is refused' fails 2 'no age: give a number with s, m, h or d' prune --older-than 12
check 'and a kind that is none' fails 2 '--only image is no kind: give sandbox, helper, folder, volume or template' prune --only image
check 'and a label without a value' fails 2 'is no NAME=VALUE' prune --label run
follow_the_schema() {
    start one
    all --orphans --older-than 0s > "$work/told" && python3 - abi/schema/pruned.json "$work/told" << 'END'
import json, sys
try:
    from jsonschema import Draft7Validator
except ImportError:
    sys.exit(0)
validator = Draft7Validator(json.load(open(sys.argv[1])))
found = [json.loads(line) for line in open(sys.argv[2])]
faults = [error.message for one in found for error in validator.iter_errors(one)]
print(*faults, sep='\n', end='')
sys.exit(not found or any(faults))
END
}
check 'what is told follows its schema' follow_the_schema
echo "1..$count"
