#!/bin/bash
# local.sh HOST-SIM LOCAL.SO: what local.so does to the machine and keeps from it, told by host-sim and
# looked at from outside; prints TAP. Skips what needs bubblewrap where that does not work.
# shellcheck disable=SC2016 # for the shell of the sandbox
set -u
host=$1
so=$2
work=$(mktemp -d)
export XDG_STATE_HOME=$work/state
run=$work/state/sprov/local
provider=(--provider "$so")
count=0
cleanup() {
    local id
    for id in box plain; do
        "$host" rm "${provider[@]}" --id $id > "$work/out" 2>&1
    done
    rm -rf "$work"
}
trap cleanup EXIT

check() { # NAME CONDITION...
    local name=$1 verdict=ok
    shift
    count=$((count + 1))
    "$@" || verdict='not ok'
    echo "$verdict $count - $name"
    [ "$verdict" = ok ] || sed 's/^/# /' "$work/out" "$work/err"
}

hs() { # COMMAND ARGUMENT...
    local command=$1
    shift
    "$host" "$command" "${provider[@]}" "$@" > "$work/out" 2> "$work/err" < /dev/null
}

in_box() { # COMMAND
    hs exec --id box -c "$1"
}

prints() { # TEXT COMMAND...
    local wanted=$1
    shift
    "$@" && [ "$(cat "$work/out")" = "$wanted" ]
}

refuses() { # PATTERN OPTIONS
    ! hs run -o "$2" -c true && grep -qE "$1" "$work/err" && [ "$(ls "$run" 2> "$work/ls")" = "" ]
}

is_empty() {
    [ -z "$(ls -A "$run")" ] || {
        ls -lA "$run" > "$work/out"
        false
    }
}

alive() { # of the processes of this test's sandboxes
    grep -lzqsx "MARK=$work" /proc/[0-9]*/environ
}

gone() { # at once, or as soon as init has waited for it
    local i
    for i in {1..100}; do
        alive || return 0
        sleep 0.1
    done
    return 1
}

# ------------------------------------------------------------------------------- refusals

check 'a capability that there is not is refused by its place' refuses 'capDrop\[1\]: ' '{"capDrop":["NET_RAW","NOPE"]}'
check 'a folder that is not there is refused by its place' refuses 'mounts\[1\].source: "/no/such"' \
    '{"tmpfs":{"/x":""},"mounts":[{"type":"tmpfs","target":"/y"},{"type":"bind","source":"/no/such","target":"/given"}]}'

check 'an image is refused by name' refuses 'image: the local provider cannot keep it' '{"image":"debian"}'
check 'a template is refused by name' refuses 'template: ' '{"template":{"baseImage":"debian"}}'
check 'mounts are refused by name' refuses 'volumes: ' '{"volumes":{"/etc":"/x"}}'
check 'a folder of the host that is not there is named' refuses '"/no/such"' '{"mounts":[{"type":"bind","source":"/no/such","target":"/given"}]}'
check 'privileged is refused by name' refuses 'privileged: ' '{"privileged":true}'
check 'a foreign network is refused by name' refuses 'network: ' '{"network":"bridge"}'
check 'another user is refused by name' refuses 'user: ' '{"user":"nobody"}'
check 'a slip of the keys is told with the right one' refuses 'isolation' '{"isolatoin":"none"}'
check 'an unknown isolation is refused' refuses 'isolation: must be one of bubblewrap, none' '{"isolation":"chroot"}'
check 'plain processes cannot be kept from the network' refuses 'network: ' '{"isolation":"none","network":"none"}'
check 'a directory of the host is no working directory' refuses 'workingDirectory: ' '{"workingDirectory":"/usr/x"}'
if ! grep -q memory /sys/fs/cgroup/cgroup.subtree_control 2> "$work/ls"; then
    check 'a limit that cannot be kept is refused by name' refuses 'pidsLimit: no cgroup' '{"pidsLimit":10,"isolation":"none"}'
    check 'so is a limit of memory' refuses 'memory: no cgroup' '{"memory":100000000,"isolation":"none"}'
fi
no_bwrap() {
    # What is found in PATH when the provider is opened counts.
    ! PATH=$work/nothing hs run -c true && grep -q '"isolation": "none"' "$work/err" && is_empty
}
check 'without bubblewrap the error names the way out, and nothing is left' no_bwrap
broken_bwrap() {
    mkdir -p "$work/bin"
    printf '#!/bin/sh\necho "bwrap: no permission" >&2\nexit 1\n' > "$work/bin/bwrap"
    chmod +x "$work/bin/bwrap"
    ! PATH=$work/bin:$PATH hs run -c true && grep -q 'bwrap: no permission' "$work/err" &&
        grep -q '"isolation": "none"' "$work/err" && is_empty
}
check 'so when it does not work, with what it said' broken_bwrap

# ------------------------------------------------------------------------- plain processes

plain="{\"isolation\":\"none\",\"env\":{\"MARK\":\"$work\"}}"
check 'plain processes run when asked for by name' prints hello hs run -o "$plain" -c 'echo hello'
hs start --id plain -o "$plain"
check 'who does not ask for them does not get them' \
    eval '! hs exec --id plain -c true && grep -q "was made without isolation" "$work/err"'
hs exec --id plain -o "$plain" --detach -c 'sleep 1000 & setsid sleep 1000'
check 'they run' alive
check 'a stop ends whatever they started' eval 'hs stop --id plain -o "$plain" && gone'
check 'their files outlive it' eval 'hs exec --id plain -o "$plain" -c "echo kept > f" && hs stop --id plain &&
    prints kept hs read --id plain -o "$plain" f'
check 'destroy leaves neither a process nor a file' eval 'hs rm --id plain && gone && is_empty'

# ------------------------------------------------------------------------------ bubblewrap

if ! hs run -c true; then
    echo "ok $((count + 1)) - bubblewrap # SKIP $(head -n 1 "$work/err")"
    echo "1..$((count + 1))"
    exit 0
fi
hs start --id box -o "{\"env\":{\"MARK\":\"$work\"},\"labels\":{\"for\":\"test\"}}"
check 'the state folder is for its user alone' [ "$(stat -c %a "$run")" = 700 ]
check 'a sandbox has the programs of the host and no file of it' \
    in_box '[ -x /usr/bin/env ] && [ ! -e /root ] && [ ! -e /home ] && [ ! -e /etc/shadow ] && [ ! -e /sys ]'
check 'it sees none of its processes' prints supervisor in_box 'cat /proc/1/comm'
check 'it writes nowhere but in its own' \
    in_box '! touch /usr/x 2>&1 && ! touch /x 2>&1 && ! touch /etc/x 2>&1 && touch x /tmp/'"${work##*/}"'.x /dev/shm/x'
check 'its /tmp is not the host'\''s' [ ! -e "/tmp/${work##*/}.x" ]
check 'it has no capability and can get none' in_box 'grep -q "^CapEff:.0*$" /proc/self/status && ! unshare -Ur true 2>&1'
check 'it cannot write the settings of the kernel' in_box 'find /proc -maxdepth 4 -path "/proc/[0-9]*" -prune -o -path /proc/self -prune -o -path /proc/thread-self -prune -o -type f -writable -print | tee w; [ ! -s w ]'
check 'it has no network' prints lo: in_box 'tail -n +3 /proc/net/dev | awk "{ print \$1 }"'
check 'it has that of the host when asked for' eval \
    'hs run -o "{\"network\":\"host\"}" -c "readlink /proc/self/ns/net" && [ "$(cat "$work/out")" = "$(readlink /proc/self/ns/net)" ]'
check 'it has nothing of the environment of the host' eval 'SECRET_OF_HOST=1 in_box "! env | grep -q SECRET_OF_HOST"'
check 'what it was given is not in any command line' eval '! grep -qs "MARK=" /proc/[0-9]*/cmdline'
check 'another user is refused by name in a command' \
    eval '! hs exec --id box --user daemon -c true && grep -q daemon "$work/err"'
in_box 'echo kept > f; mkdir -p deep/er; chmod 000 deep'
hs exec --id box --detach -c 'sleep 1000 & setsid sleep 1000'

# The supervisor outlives the host that started it, and whatever becomes of that one.
"$host" exec "${provider[@]}" --id box -c 'echo running; sleep 1000' > "$work/held" 2>&1 < /dev/null &
victim=$!
for i in {1..100}; do
    grep -qs running "$work/held" && break
    sleep 0.1
done
kill -9 $victim
wait $victim 2> "$work/ls"
check 'a host that was killed leaves sandboxes to the next' prints kept in_box 'cat f'
check 'list tells them' eval 'hs ls --json && grep -q "\"id\": *\"box\"" "$work/out" && grep -q "\"for\": *\"test\"" "$work/out"'
check 'a stop ends all that ran' eval 'hs stop --id box && gone'
check 'files outlive a stop' prints kept in_box 'cat f'

# A supervisor that dies is noticed, and the next command has a new one.
victim=$(pgrep -P "$(pgrep -f "bwrap.*$run")")
kill -9 "$victim"
while kill -0 "$victim" 2> "$work/ls"; do
    sleep 0.1
done
check 'a supervisor that was killed is replaced' prints kept in_box 'cat f'
starts() {
    local i pids=() bad=0
    hs stop --id box
    for i in 1 2 3 4 5 6; do
        "$host" exec "${provider[@]}" --id box -c 'cat /proc/sys/kernel/random/uuid > /dev/null; readlink /proc/self/ns/pid' \
            > "$work/start.$i" 2>&1 < /dev/null &
        pids+=($!)
    done
    for i in "${pids[@]}"; do
        wait "$i" || bad=1
    done
    cat "$work"/start.* > "$work/out"
    [ $bad = 0 ] && [ "$(sort -u "$work/out" | wc -l)" = 1 ]
}
check 'hosts that start one at once share it' starts
check 'destroy leaves neither a process nor a file' eval 'hs rm --id box && gone && is_empty'
check 'what is gone cannot be used without starting it' eval '! hs exec --id box --no-start -c true'

# A folder that somebody removed takes its record with it, not its processes.
orphan() { # ID OPTIONS
    hs start --id "$1" -o "$2" && hs exec --id "$1" -o "$2" --detach --env "MARK=$work" -c "exec sleep 1000" && alive &&
        rm -rf "${run:?}"/????????????????
}
for way in '{}' '{"isolation":"none"}'; do
    check "a start ends what runs of a sandbox whose folder is gone: $way" \
        eval 'orphan box "$way" && hs start --id box -o "$way" && grep -q created "$work/err" && gone'
    check 'and it works' eval 'hs exec --id box -o "$way" -c "echo x > f" && hs rm --id box -o "$way" && is_empty'
    check 'so does a removal' eval 'orphan box "$way" && hs rm --id box -o "$way" && gone && is_empty'
done

# A host that dies between the start and its record leaves a folder and a process.
hs start --id box
record=$(ls "$run"/*/record.json)
sed -i 's/"pid": [0-9]*/"pid": 0/' "$record"
inside=$(in_box 'readlink /proc/self/ns/pid' && cat "$work/out")
check 'a sandbox that nobody wrote down is found by its socket' \
    prints "$inside" in_box 'readlink /proc/self/ns/pid'
check 'and goes' eval 'hs rm --id box && is_empty'

# --------------------------------------------------------------------------------- mounts

mkdir -p "$work/given/deep"
echo ours > "$work/given/file"
mounts="{\"mounts\":[{\"type\":\"bind\",\"source\":\"$work/given\",\"target\":\"/given\"},
    {\"type\":\"bind\",\"source\":\"$work/given\",\"target\":\"/looked\",\"readOnly\":true},
    {\"type\":\"tmpfs\",\"target\":\"/given/deep\"}],\"tmpfs\":{\"/small\":\"size=64k,mode=700\"}}"
hs start --id box -o "$mounts"
check 'a folder of the host is given, and only to be read where that was asked for' \
    in_box 'grep -q ours /given/file && grep -q ours /looked/file && echo theirs > /given/new && ! touch /looked/x'
warned() { # OPTIONS PATTERN: one warning like that; none for ''
    hs start --id box -o "$1"
    if [ -n "$2" ]; then
        [ "$(grep -c differs "$work/err")" = 1 ] && grep -qE "$2" "$work/err"
    else
        ! grep -q differs "$work/err"
    fi
}
check 'who asks for the same is told nothing' warned "$mounts" ''
check 'nor who asks for nothing' warned '{}' ''
check 'who asks for something else is told all of it in one line' warned \
    '{"mounts":[],"hostname":"other","labels":{"a b":"c"},"workingDirectory":"/w"}' \
    'hostname \(asked for "other", it has its default\), workingDirectory \(asked for "/w", it has "/workspace"\), mounts, labels\["a b"\];'
check 'its state is told in a word of its own' eval \
    'hs info --id box --json && grep -q "\"state\": *\"running\"" "$work/out" && grep -q "\"isolation\": *\"bubblewrap\"" "$work/out"'
check 'it is the same folder' grep -q theirs "$work/given/new"
check 'memory has its size and mode, also in what is given' \
    in_box 'touch /given/deep/hidden && ! head -c 100000 /dev/zero > /small/x && [ "$(stat -c %a /small)" = 700 ]'
check 'and is nothing of the host' [ ! -e "$work/given/deep/hidden" ]
hs stop --id box
check 'another host starts it with the same' in_box 'grep -q theirs /given/new && [ ! -s /small/x ]'
check 'a removal takes nothing of what was given' eval 'hs rm --id box && is_empty && grep -q ours "$work/given/file"'

# --------------------------------------------------------------------------------- paused

hs start --id box
in_box 'echo kept > f'
frozen=$(pgrep -P "$(pgrep -f "bwrap.*$run")")
kill -STOP "$frozen"
check 'a paused sandbox says so, at once' \
    eval '! hs exec --id box --timeout 60 -c "echo no > f" && grep -q "is paused" "$work/err"'
check 'to whoever starts it too' eval '! hs start --id box && grep -q "is paused" "$work/err"'
check 'its state tells it' eval 'hs info --id box --json && grep -q "\"status\": *\"paused\"" "$work/out"'
kill -CONT "$frozen"
check 'and nothing was done when it goes on' prints kept in_box 'cat f'
kill -STOP "$frozen"
check 'a paused one can be removed' eval 'hs rm --id box && gone && is_empty'

# ---------------------------------------------------------------------------------- prune

tells() { # TEXT: a line of what prune told
    grep -qF -- "$1" "$work/out"
}
keeps() { # ID...: these sandboxes are there, and no others
    hs ls --json && [ "$(grep -o '"id": *"[a-z]*"' "$work/out" | sort | tr -dc 'a-z \n' | sed 's/^id//' | tr -d '\n')" = "$(printf '%s' "$@")" ]
}
hs start --id box -o '{"labels":{"for":"test"}}'
hs start --id plain -o '{"isolation":"none"}'
spawned=$(hs exec --id box --detach -c 'sleep 1000' && cat "$work/out")
unmeant() {
    hs kill --id box "$spawned"
    hs prune --orphans --label for=another --json && keeps box
}
check 'a dry prune removes nothing' eval 'hs prune --orphans --dry-run --json && tells "\"reason\":\"dry-run\"" && keeps box plain'
check 'a prune takes what its host left, and leaves what is used' \
    eval 'hs prune --orphans --json && tells "\"removed\":true" && tells "\"reason\":\"in-use\"" && keeps box'
check 'labels say what is meant' unmeant
empties() { # OPTION...: what ends may take a moment to
    local i
    for i in {1..50}; do
        hs prune --json "$@" && is_empty && return
        sleep 0.2
    done
    return 1
}
check 'what has ended is no use' empties --orphans --label for=test
"$host" run "${provider[@]}" -c 'echo running; sleep 1000' > "$work/held" 2>&1 < /dev/null &
victim=$!
for i in {1..100}; do
    grep -qs running "$work/held" && break
    sleep 0.1
done
check 'what a living host made stays' \
    eval 'hs prune --older-than 0s --json && tells "\"reason\":\"owned\"" && ! is_empty'
kill -9 $victim
wait $victim 2> "$work/ls"
check 'and goes when that host was killed' empties --orphans
mkdir -p "$run/0123456789abcdef/workspace/deep" "$run/fedcba9876543210" "$run/others"
touch -d '5 minutes ago' "$run/0123456789abcdef" "$run/others"
check 'a folder without a record goes, unless it may be in the making or is none of ours' \
    eval 'hs prune --json && tells 0123456789abcdef && [ "$(ls "$run" | tr "\n" " ")" = "fedcba9876543210 others " ]'
rmdir "$run/fedcba9876543210" "$run/others"

# What a sandbox puts in place of its socket is neither followed nor believed.
hs start --id box
in_box 'rm -f /.sprov/run/*.sock; ln -s /.sprov/run/other /.sprov/run/$(id -u).$(id -g).sock'
check 'a socket that became a link is not followed' eval '! in_box true && grep -q "supervisor.s socket" "$work/err"'
check 'and such a sandbox can be removed' eval 'hs rm --id box && is_empty'
echo "1..$count"
