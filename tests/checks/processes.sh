#!/bin/bash
# processes.sh: processes that outlive the host that spawned them, with hosts that are killed and
# several at once; prints TAP. Needs the engine of DOCKER_HOST, or another PROVIDER and OPTIONS.
set -u
cd "$(dirname "$0")/../.." || exit 1

host=${HOST_SIM:-$PWD/build/host-sim/host-sim}
open=(--provider "${PROVIDER:-$PWD/build/plugin/docker/docker.so}")
options=${OPTIONS:-'{"image":"debian:bookworm-slim"}'}
work=$(mktemp -d)
id=processes-$$-$(date +%s)
count=0
children=()

cleanup() {
    kill "${children[@]}" 2> /dev/null
    "$host" rm "${open[@]}" "$id" 2> "$work/err" || cat "$work/err" >&2
    rm -rf "$work"
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
    "$host" "$command" "${open[@]}" --id "$id" "$@"
}

spawn() { # COMMAND: prints the id
    hs exec --detach -c "$1"
}

exits_with() { # STATUS COMMAND...
    local wanted=$1
    shift
    "$@" > "$work/last.out" 2> "$work/last.err" < /dev/null
    [ $? -eq "$wanted" ]
}

if [ -z "${DOCKER_HOST:-}${PROVIDER:-}" ]; then
    echo '1..0 # SKIP DOCKER_HOST is not set'
    exit 0
fi
"$host" start "${open[@]}" --id "$id" --options "$options" > "$work/start.out" 2>&1 || {
    cat "$work/start.out"
    exit 1
}

# ------------------------------------------------------------------ a host that is killed

slow='i=0; while [ $i -lt 100 ]; do seq $((i * 1000)) $((i * 1000 + 999)); sleep 0.03; i=$((i + 1)); done; exit 17'
seq 0 99999 > "$work/expected"
hs attach -c "$slow" > "$work/first.out" 2> "$work/first.err" < /dev/null &
victim=$!
until [ -s "$work/first.out" ]; do
    kill -0 "$victim" 2> /dev/null || break
    sleep 0.05
done
kill -9 "$victim"
wait "$victim" 2> /dev/null
process=$(hs ps --json | sed -n 's/.*"id":"\([^"]*\)".*/\1/p' | head -n 1)

still_runs() {
    hs ps --json | grep "\"id\":\"$process\"" | grep -q '"running":true'
}
check 'a process runs on when its host is killed' still_runs

hs logs -f "$process" > "$work/two.out" &
children+=($!)
hs logs -f "$process" > "$work/three.out" &
children+=($!)
wait "${children[@]}"
children=()
check 'another host reads its whole output from the first byte' cmp "$work/expected" "$work/two.out"
check 'and so does a third one at the same time' cmp "$work/expected" "$work/three.out"
check 'and gets its exit code' exits_with 17 hs attach "$process"

# ----------------------------------------------------------------- two hosts at once

process=$(spawn 'while read -r line; do echo "got $line"; done; exit 4')
hs logs -f "$process" > "$work/reader.out" &
children+=($!)
printf 'one\ntwo\n' | hs attach "$process" > "$work/feeder.out"
check 'one host feeds a process' test "${PIPESTATUS[1]}" -eq 4
wait "${children[@]}"
children=()
printf 'got one\ngot two\n' > "$work/expected"
check 'while another one reads it' cmp "$work/expected" "$work/reader.out"

# --------------------------------------------------------------------- many of them

for n in $(seq 20); do
    spawn "sleep 1; seq $n $((n * 1000)); exit $n" > "$work/id.$n" &
    children+=($!)
done
wait "${children[@]}"
children=()

all_are_right() {
    local n
    for n in $(seq 20); do
        hs logs -f "$(cat "$work/id.$n")" > "$work/out.$n" &&
            cmp "$work/out.$n" <(seq "$n" $((n * 1000))) &&
            exits_with "$n" hs attach "$(cat "$work/id.$n")" || return 1
    done
}
check 'twenty hosts spawn twenty processes, each with its own output and exit code' all_are_right

# --------------------------------------------------------------------- what is dropped

process=$(spawn 'seq 1 300000')
exits_with 0 hs attach "$process"
hs logs "$process" > "$work/logs" 2> "$work/last.err"
all=$(seq 1 300000 | wc -c)
dropped=$(sed -n 's/.*warning: \([0-9]*\) bytes of output are not kept.*/\1/p' "$work/last.err")
check 'how much of a long output is not kept any more is told' \
    [ "$((${dropped:-0} + $(wc -c < "$work/logs")))" -eq "$all" ]

# ------------------------------------------------------------------------- kills

process=$(spawn 'trap "" TERM; sleep 300 & sleep 300')
check 'a process is killed with its tree' exits_with 0 hs kill --signal SIGTERM --grace 1 "$process"
check 'it says so' exits_with 137 hs attach "$process"
check 'and is no longer there to be killed' exits_with 125 hs kill "$process"

# -------------------------------------------------------------------------- the list

process=$(hs exec --detach -- /no/such/program)
check 'one that could not be run is known to every host' exits_with 127 hs attach "$process"
tells_why() {
    hs logs --stderr "$process" | grep -q '/no/such/program: No such file'
}
check 'and so is the reason' tells_why

spawn 'sleep 300' > "$work/id.sleep"
follow_the_schema() {
    hs ps --json > "$work/ps" && python3 - abi/schema/process.json "$work/ps" << 'END'
import json, sys
try:
    from jsonschema import Draft7Validator
except ImportError:
    sys.exit(0)
validator = Draft7Validator(json.load(open(sys.argv[1])))
processes = [json.loads(line) for line in open(sys.argv[2])]
faults = [error.message for process in processes for error in validator.iter_errors(process)]
print(*faults, sep='\n', end='')
sys.exit(len(processes) < 20 or any(faults))
END
}
check 'what is listed follows its schema' follow_the_schema
echo "1..$count"
