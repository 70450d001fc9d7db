#!/bin/bash
# prune.sh: what host-sim prune removes of a whole engine, which is its own: sandboxes, helpers,
# folders, volumes and templates, beside things of others. Prints TAP. tests/checks/prune.sh has what
# can be tried on an engine that others use.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/engines/lib.sh
. tests/engines/lib.sh
# shellcheck source=tests/checks/tap.bash
. tests/checks/tap.bash

host=$PWD/build/host-sim/host-sim
others=$engines
own=$(mktemp -d /var/tmp/sprov-pr-XXXX)
work=$(mktemp -d)
export SPROV_ENGINES=$own SPROV_BRIDGE_PREFIX=brpr SPROV_BRIDGE_NET=11

cleanup() {
    tests/engines/down 26.1
    rm -rf "$own" "$work"
}
trap cleanup EXIT

# The root and the base images of the usual engine serve this one as well.
chmod 755 "$own"
mkdir "$own/26.1"
[ ! -d "$others/26.1/root" ] || ln -s "$others/26.1/root" "$own/26.1/root"
[ ! -d "$others/cache" ] || ln -s "$others/cache" "$own/cache"
DOCKER_HOST=$(tests/engines/up 26.1) || exit 1
export DOCKER_HOST
open=(--provider "$PWD/build/plugin/docker/docker.so" --config "{\"runtimeDir\":\"$own/shared/run\"}")

hs() { # COMMAND ARGUMENT...
    local command=$1
    shift
    timeout 300 "$host" "$command" "${open[@]}" "$@"
}

post() { # PATH JSON
    engine_api "$1" -X POST -H 'Content-Type: application/json' -d "$2"
}

create() { # NAME JSON
    post "/containers/create?name=$1" "$2" > "$work/out"
}

# census: everything there is, one a line
census() {
    engine_api '/containers/json?all=1' | grep -o '"Names":\["/[^"]*"' | sed 's|.*"/|container |; s|"$||'
    engine_api /volumes | grep -o '"Name":"[^"]*"' | sed 's/.*:"/volume /; s/"$//'
    engine_api /images/json | grep -o '"RepoTags":\[[^]]*\]' | grep -o '[^",:[]*:[^",]*"' | sed 's/"$//; s/^/image /'
    find "$own/shared/run" -mindepth 1 -maxdepth 1 -printf 'folder %f\n'
}

has() { census | grep -qxF -- "$1"; }

has_not() { ! has "$1"; }

# A host that is gone, and one that never was here.
me=$(cat /proc/sys/kernel/random/boot_id)
namespace=$(readlink /proc/self/ns/pid | tr -dc '0-9')
sleep 0 &
dead=$!
wait "$dead"
labels() { # OWNER CREATED
    printf '"sprov.version":"0","sprov.owner":"%s","sprov.created":"%s"' "$1" "$2"
}
orphan=$(labels "$me:$dead:1:$namespace" 2020-01-01T00:00:00Z)
# shellcheck disable=SC2034 # used by name, as the next
unknown=$(labels 0b00b00b-0000-4000-8000-000000000000:7:7:7 2020-01-01T00:00:00Z)
# shellcheck disable=SC2034
young=$(labels "$me:$dead:1:$namespace" "$(date -u +%FT%TZ)")

# -------------------------------------------------------------------------- things of others

create stranger '{"Image":"busybox:latest"}'
create reference '{"Image":"busybox:latest","Labels":{"mastra.sandbox":"true","mastra.sandbox.id":"reference"}}'
create looks-like-ours "{\"Image\":\"busybox:latest\",\"Labels\":{$orphan}}"
post /volumes/create '{"Name":"strange"}' > "$work/out"
post /volumes/create '{"Name":"sprov-supervisor-strange"}' > "$work/out"
post /volumes/create "{\"Name\":\"labelled\",\"Labels\":{$orphan,\"sprov.supervisor\":\"x\"}}" > "$work/out"
engine_api '/images/busybox:latest/tag?repo=mastra-template&tag=of-the-reference' -X POST
mkdir "$own/shared/run" && chmod 700 "$own/shared/run" && mkdir "$own/shared/run/notes"
census | sort > "$work/foreign"

# ---------------------------------------------------------------------------------- ours

definition() { # VALUE: of a template
    printf '{"baseImage":"busybox:latest","operations":[{"method":"setEnvs","args":[{"T":"%s"}]}]}' "$1" > "$work/$1.json"
    hs build "$work/$1.json" 2> "$work/err"
}
used=$(definition used)
unused=$(definition unused)
hs start --id keeps -o "{\"template\":\"$used\"}" > "$work/out" 2>&1
hs exec --id keeps --detach -c 'sleep 3000' > "$work/out"
hs start --id stops -o '{"image":"debian:bookworm-slim"}' > "$work/out" 2>&1
hs stop stops
hs start --id runs -o '{"image":"debian:bookworm-slim","capAdd":["SYS_ADMIN"]}' > "$work/out" 2>&1
hs start --id lost -o '{"image":"debian:bookworm-slim"}' > "$work/out" 2>&1
engine_api '/containers/lost?force=1&v=1' -X DELETE
touch -d '2 hours ago' "$own"/shared/run/*
build=$(census | grep -x 'volume sprov-supervisor-[0-9a-f]\{16\}')
for kind in orphan unknown young; do
    create "helper-$kind" "{\"Image\":\"busybox:latest\",\"Labels\":{${!kind},\"sprov.helper\":\"v\"}}"
    post /volumes/create "{\"Name\":\"sprov-supervisor-own-$kind\",\"Labels\":{${!kind},\"sprov.supervisor\":\"x\"}}" > "$work/out"
    post /volumes/create "{\"Name\":\"sprov-supervisor-$kind\",\"Labels\":{${!kind},\"sprov.supervisor\":\"$kind\"}}" > "$work/out"
done
create mounts "{\"Image\":\"busybox:latest\",\"HostConfig\":{\"Binds\":[\"sprov-supervisor-used:/x\"]}}"
engine_api /volumes/sprov-supervisor-used -X DELETE -o "$work/out"
engine_api '/containers/mounts?force=1' -X DELETE
post /volumes/create "{\"Name\":\"sprov-supervisor-used\",\"Labels\":{$orphan,\"sprov.supervisor\":\"used\"}}" > "$work/out"
create mounts "{\"Image\":\"busybox:latest\",\"HostConfig\":{\"Binds\":[\"sprov-supervisor-used:/x\"]}}"

all_of() { # WORD NAME...: each is there, or not
    local word=$1 name
    shift
    for name in "$@"; do
        "$word" "$name" || { echo "# not so: $word $name"; return 1; }
    done
}

census | sort > "$work/before"
hs prune --orphans --older-than 0s --dry-run > "$work/told"
census | sort > "$work/after"
check 'a dry run changes nothing' cmp "$work/before" "$work/after"
check 'and tells what would be' test "$(grep -c 'would be removed' "$work/told")" -ge 8

folders=$(find "$own/shared/run" -mindepth 1 -maxdepth 1 -name '????????????????' | wc -l)
hs prune > "$work/told" || cat "$work/told"
check 'left-overs of dead hosts are gone' all_of has_not 'container helper-orphan' 'volume sprov-supervisor-own-orphan' \
    'volume sprov-supervisor-orphan' 'volume sprov-supervisor-unknown'
check 'those of other machines and new ones stay' all_of has 'container helper-unknown' 'container helper-young' \
    'volume sprov-supervisor-own-unknown' 'volume sprov-supervisor-own-young' 'volume sprov-supervisor-young'
check 'the folder of a sandbox that is gone is' \
    [ "$(find "$own/shared/run" -mindepth 1 -maxdepth 1 -name '????????????????' | wc -l)" -eq $((folders - 1)) ]
check 'volumes in use stay, and that of this build' all_of has 'volume sprov-supervisor-used' "$build"
check 'and all sandboxes and templates' all_of has 'container keeps' 'container stops' 'container runs' "image $used" "image $unused"

two_at_once() {
    hs prune --orphans > "$work/one" & one=$!
    hs prune --orphans > "$work/two" & two=$!
    wait "$one" && wait "$two"
}
check 'two prunes of orphans at once end well' two_at_once
check 'the orphans are gone with their volume' all_of has_not 'container stops' 'container runs'
check 'of their own' test "$(census | grep -c 'volume sprov-supervisor-own-[0-9a-f]\{16\}')" -eq 0
check 'one that is used stays, and its folder' all_of has 'container keeps'
check 'templates are not for orphans' all_of has "image $used" "image $unused"

hs templates prune > "$work/told"
check 'templates prune removes what nobody uses' has_not "image $unused"
check 'and keeps what a sandbox uses' has "image $used"

hs prune --older-than 1d > "$work/told"
check 'age takes what nobody knows the owner of' all_of has_not 'container helper-unknown' 'volume sprov-supervisor-own-unknown'
check 'but nothing younger' all_of has 'container helper-young' 'volume sprov-supervisor-young' 'container keeps'
hs rm keeps
hs prune --only template --older-than 0s > "$work/told"
check 'a template whose last sandbox went goes' has_not "image $used"
nothing_foreign_gone() {
    census | sort > "$work/after"
    [ -z "$(comm -23 "$work/foreign" "$work/after")" ] || { comm -23 "$work/foreign" "$work/after" | sed 's/^/# gone: /'; false; }
}
check 'and whatever was here before is here still' nothing_foreign_gone
check 'the image of the reference too' has 'image mastra-template:of-the-reference'
echo "1..$count"
