#!/bin/bash
# host-sim-cli.sh: uses host-sim as a person or a script does and prints TAP. By default with the
# mock provider and no engine; PROVIDER, CONFIG and OPTIONS (JSON) name another, for example
#   PROVIDER=build/plugin/docker/docker.so OPTIONS='{"image":"debian:bookworm-slim"}' tests/checks/host-sim-cli.sh
set -u
cd "$(dirname "$0")/../.." || exit 1

host=$PWD/build/host-sim/host-sim
provider=$(realpath "${PROVIDER:-build/tests/providers/mock.so}")
work=$(mktemp -d)
chmod 755 "$work"
id=cli-$$-$(date +%s)
if [ -z "${PROVIDER:-}" ]; then
    mkdir "$work/engine"
    CONFIG="{\"host\":\"unix://$work/engine\"}"
fi
open=(--provider "$provider" --config "${CONFIG:-{\}}")
with=("${open[@]}" --options "${OPTIONS:-{\}}")
count=0

cleanup() {
    "$host" rm "${open[@]}" "$id" "$id-run" "$id-clone" 2> /dev/null
    rm -rf "$work"
}
trap cleanup EXIT

call() { # ARGUMENT...: runs host-sim and keeps what came of it
    "$host" "$@" > "$work/out" 2> "$work/err"
    status=$?
    out=$(cat "$work/out")
    err=$(cat "$work/err")
}

check() { # NAME CONDITION...
    local name=$1
    shift
    count=$((count + 1))
    if "$@"; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        printf 'exit status %s\nstdout: %s\nstderr: %s\n' "$status" "$out" "$err" | head -c 2000 | sed 's/^/# /'
    fi
}

gave() { # STATUS OUT ERR: patterns of bash; ERR is one line at most
    # shellcheck disable=SC2053
    [ "$status" -eq "$1" ] && [[ $out == $2 ]] && [[ $err == $3 ]] && [ "$(wc -l < "$work/err")" -le 1 ]
}

all() { # COMMAND -- COMMAND...: true when each of them is
    local command=()
    for word in "$@" --; do
        if [ "$word" = -- ]; then
            "${command[@]}" || return 1
            command=()
        else
            command+=("$word")
        fi
    done
}

is_listed() { # ID
    "$host" ls "${open[@]}" --json | grep -q "\"id\":\"$1\""
}

is_gone() {
    ! is_listed "$1"
}

# ------------------------------------------------------------------ the command line

call --help
check 'help lists the commands' all gave 0 '*Usage:*  run *  start *  exec *  info *' '' -- test "$out" != ''
commands=$(sed -n 's/^  \([a-z]\{2,\}\) .*/\1/p' "$work/out" | sort)
check 'docs/host-sim.md has them all' test "$(grep -oE '`(host-sim )?[a-z]+' docs/host-sim.md | sed 's/.*[` ]//' | sort -u | comm -13 - <(echo "$commands"))" = ''
call help run
check 'help of a command tells its options and exit codes' gave 0 '*--timeout=SECONDS*Exit codes:*124*125*Examples:*' ''
call read --help
check '--help of a command is the same' gave 0 '*host-sim read*--to=FILE*Exit codes:*' ''
call
check 'no command is a usage error' gave 2 '' '*host-sim --help*'
call rnu
check 'an unknown command suggests the right one' gave 2 '' '*rnu*did you mean run?*'
call ls --jsno
check 'an unknown option suggests the right one' gave 2 '' '*--jsno*did you mean --json?*'
call run --tiemout 3 -c true
check 'a usage error of run is 125, which no command gives' gave 125 '' '*did you mean --timeout?*'
call exec "${open[@]}" -c true
check 'exec without an id tells how to find one' gave 125 '' '*--id is missing*host-sim ls*'
call run sh -c true
check 'a command without -- before it is explained' gave 125 '' '*"sh"*--*'
call start "${open[@]}" --options '{"a":1,'
check 'broken JSON is told with its place' gave 2 '' '*--options*line 1, column*'
call start "${open[@]}" --config "@$work/none.json"
check 'a missing @FILE is told by name' gave 2 '' "*--config*$work/none.json*"
call kill "${open[@]}" --id x --signal FOO 1
check 'what is no signal is told' gave 2 '' '*"FOO" is no signal*TERM*1 to 64*'
call prune "${open[@]}"
check 'a provider that prunes nothing is told so' gave 125 '' '*sprov.provider/1*'
call cp "${open[@]}" file dir
check 'cp needs a sandbox' gave 2 '' '*ID:PATH*'
call write --id x --mode 999 path
check 'a wrong mode is a usage error' gave 2 '' '*999*octal*'

# ------------------------------------------------------------------ finding a provider

call info "$work/none.so"
check 'a provider that is not there is told by path' gave 125 '' "*$work/none.so*No such file*"
call info no-such-provider
check 'an unknown bare name tells where it was looked up' gave 125 '' '*no-such-provider.so*SANDBOX_PROVIDER_PATH*'
name=$(basename "$provider" .so)
SANDBOX_PROVIDER_PATH=/nonexistent:$(dirname "$provider") call info "$name"
check 'a bare name is looked up in SANDBOX_PROVIDER_PATH' gave 0 "*$provider*" ''
mkdir "$work/open" && cp "$provider" "$work/open/p.so" && chmod 777 "$work/open"
call info "$work/open/p.so"
check 'a world-writable folder is refused by name' gave 125 '' "*$work/open is world-writable*chmod o-w*"
chmod 755 "$work/open" && chmod 666 "$work/open/p.so"
call info "$work/open/p.so"
check 'a world-writable file is refused by name' gave 125 '' "*$work/open/p.so is world-writable*chmod o-w*"
printf 'text' > "$work/text.so"
call info "$work/text.so"
check 'what is no shared object is refused' gave 125 '' "*$work/text.so*"
call info "${open[@]}"
check 'info tells provider, ABI and extensions' gave 0 '*provider *file *abi *1.*extensions *sprov.lifecycle/1*' ''
call info "${open[@]}" --json
check 'info --json is one JSON object' all gave 0 '*"extensions"*' '' -- python3 -c 'import json,sys; json.load(open(sys.argv[1]))' "$work/out"
call info "$provider" --config '{"nosuchkey":1}'
check 'a configuration that is refused is told by its key' gave 125 '*' '*nosuchkey*'

# ------------------------------------------------------------------ run

call run "${with[@]}" -- sh -c 'echo out; echo err >&2; exit 7'
check 'a command has its two streams and its exit code' gave 7 out err
echo 'in and out' > "$work/in"
call run "${with[@]}" -- cat < "$work/in"
check 'standard input is passed on from a file' gave 0 'in and out' ''
call run "${with[@]}" -- cat < <(echo piped)
check 'standard input is passed on from a pipe' gave 0 piped ''
call run "${with[@]}" -c 'echo done' < <(sleep 20)
check 'a standard input that stays open does not hold up the end' gave 0 'done' ''
call run "${with[@]}" --env 'A=b c' --cwd /tmp -c 'echo "$A in $(pwd)"'
check 'environment and folder reach the command' gave 0 'b c in /tmp' ''
SECRET_OF_TEST='s e c r e t' call run "${with[@]}" --secret TOKEN=env:SECRET_OF_TEST -c 'echo "$TOKEN"'
check 'a secret reaches the command as a variable' gave 0 's e c r e t' ''
call run "${with[@]}" --secret TOKEN=hunter2 -c true
check 'a secret on the command line is refused and not repeated' all gave 125 '' '*env:*file:*' -- test "${err/hunter2/}" = "$err"
call run "${with[@]}" -- /nonexistent/program
check 'a missing program is 127 as in a shell' gave 127 '' '*'
call run "${with[@]}" -- /etc/passwd
check 'a file that is not executable is 126 as in a shell' gave 126 '' '*'
call run "${with[@]}" --timeout 0.5 -c 'echo first; sleep 60'
check 'a timeout is 124 and keeps what was printed' gave 124 first ''
call run "${open[@]}" --options "${OPTIONS:-{\}}" --id "$id-run" -c true
check 'the sandbox is gone after the run' all gave 0 '' '' -- is_gone "$id-run"
call run "${open[@]}" --options "${OPTIONS:-{\}}" --id "$id-run" --keep -c true
check '--keep leaves the sandbox and tells its id' all gave 0 '' "kept $id-run" -- is_listed "$id-run"
call run "${open[@]}" --id "$id-run" -c true
check 'a sandbox that was there before is kept' all gave 0 '' "*$id-run*is kept*" -- is_listed "$id-run"
call rm "${open[@]}" "$id-run"
call run --provider "$provider" --config "{\"host\":\"unix://$work/no-engine\"}" -c true
check 'an engine that is not there is one line that names it' gave 125 '' "*$work/no-engine*"
"$host" run "${with[@]}" -c 'while echo y; do :; done' 2> "$work/err" | head -n 1 > "$work/out"
status=${PIPESTATUS[0]} out=$(cat "$work/out") err=$(cat "$work/err")
check 'a reader that goes away ends the command silently' gave 141 y ''
"$host" run "${with[@]}" -c 'echo lost' 2> "$work/err" > /dev/full
status=$? out='' err=$(cat "$work/err")
check 'output that cannot be written is an error' gave 125 '' '*standard output*No space left*'

interrupt() { # SIGNAL: sent once the command has begun
    "$host" run "${open[@]}" --options "${OPTIONS:-{\}}" --id "$id-run" -c 'echo begun; sleep 60' \
        > "$work/out" 2> "$work/err" &
    local pid=$! tries=0
    until grep -q begun "$work/out" || [ $((tries += 1)) -gt 600 ]; do
        sleep 0.05
    done
    kill -s "$1" "$pid"
    kill -s "$1" "$pid" 2> /dev/null # impatience does not skip the cleanup
    wait "$pid"
    status=$? out=$(cat "$work/out") err=$(cat "$work/err")
}
interrupt INT
check 'SIGINT ends the command, removes the sandbox and is 130' all gave 130 begun '' -- is_gone "$id-run"
interrupt TERM
check 'SIGTERM ends the command, removes the sandbox and is 143' all gave 143 begun '' -- is_gone "$id-run"

# ------------------------------------------------------------------ one sandbox, many processes

call exec "${open[@]}" --id "$id" -c true
check 'exec never creates a sandbox for a mistyped id' all gave 125 '' "*$id*" -- is_gone "$id"
call read "${open[@]}" --id "$id" /etc/passwd
check 'read never creates a sandbox for a mistyped id' all gave 125 '' "*$id*" -- is_gone "$id"
call stop "${open[@]}" "$id"
check 'stop of a mistyped id is an error' gave 125 '' "*$id*host-sim ls*"
call ps "${open[@]}" --id "$id"
check 'so is ps' gave 125 '' "*$id*host-sim ls*"
call info "${open[@]}" --id "$id"
check 'and info' gave 125 '' "*$id*host-sim ls*"
call start "${with[@]}" --id "$id"
check 'start prints the id, and that it was created' gave 0 "$id" created
call start "${with[@]}" --id "$id"
check 'a second start connects' gave 0 "$id" connected
call exec "${open[@]}" --id "$id" -- sh -c 'echo out; echo err >&2; exit 3'
check 'exec has streams and exit code of its command' gave 3 out err
head -c 300007 /dev/urandom > "$work/bytes"
call write "${open[@]}" --id "$id" "dir/a file" < <(cat "$work/bytes")
check 'a file is written from a pipe' gave 0 '' ''
call read "${open[@]}" --id "$id" "dir/a file"
check 'and read back byte for byte' all test "$status" -eq 0 -- cmp -s "$work/out" "$work/bytes"
call write "${open[@]}" --id "$id" tool --from "$work/bytes" --mode 0750
call exec "${open[@]}" --id "$id" -c 'stat -c %a tool'
check 'a file is written from a file with its mode' gave 0 750 ''
call read "${open[@]}" --id "$id" tool --to "$work/copy"
check 'and read into a file' all gave 0 '' '' -- cmp -s "$work/copy" "$work/bytes"
mkdir "$work/target"
call read "${open[@]}" --id "$id" no/such/file --to "$work/target/copy"
check 'a read that fails leaves no partial file' all gave 125 '' '*no/such/file*' -- test -z "$(ls -A "$work/target")"
call read "${open[@]}" --id "$id" tool --to "$work/target"
check 'a folder is no target' gave 2 '' "*$work/target*"
if "$host" info "${open[@]}" | grep -q 'sprov.archive/1'; then
    mkdir "$work/tree" "$work/got"
    printf data > "$work/tree/a file"
    ln -s 'a file' "$work/tree/link"
    call put "${open[@]}" --id "$id" made/here < <(tar -C "$work" -c tree)
    check 'a directory is put as an archive' gave 0 '' ''
    call get "${open[@]}" --id "$id" made/here/tree --to "$work/got.tar"
    check 'and got again' all gave 0 '' '' -- tar -C "$work/got" -xf "$work/got.tar" -- \
        diff -r "$work/tree" "$work/got/tree"
    call put "${open[@]}" --id "$id" made < "$work/bytes"
    check 'what is no archive is refused' gave 125 '' '*tar*'
else
    call get "${open[@]}" --id "$id" tool
    check 'a provider without archives is told so' gave 125 '' '*sprov.archive/1*'
fi
call info "${open[@]}" --id "$id"
check 'info --id tells of the sandbox' gave 0 "*id *$id*status *running*instructions *" ''
call info "${open[@]}" --id "$id" --json
check 'as JSON too' all gave 0 '*"status": "running"*' '' -- python3 -c 'import json,sys; json.load(open(sys.argv[1]))' "$work/out"
call ls "${open[@]}"
check 'ls shows the sandbox in a table' gave 0 "ID *STATUS *IMAGE *AGE *PROCESSES*$id *running *" ''
call stop "${open[@]}" --id "$id"
check 'stop stops it and keeps it' all gave 0 '' '' -- is_listed "$id"
call exec "${open[@]}" --id "$id" --options '{"autoStart":false}' -c true
check 'a stopped sandbox stays stopped where that was asked for' gave 125 '' '*'
call exec "${open[@]}" --id "$id" -c 'cat tool | wc -c'
check 'exec starts it again with its files' gave 0 300007 ''
call clone "${with[@]}" --id "$id-clone" --with '{"env":{"CLONED":"yes"}}'
check 'clone starts another with the options and what is changed in them' gave 0 "$id-clone" created
call exec "${open[@]}" --id "$id-clone" --options '{"env":{"CLONED":"yes"}}' -c 'echo $CLONED; test ! -e tool'
check 'which has none of the files' gave 0 yes ''
call clone "${with[@]}" --id "$id-clone"
check 'an id that is taken makes no clone' gave 125 '' '*already*'
call clone "${with[@]}" --with '[]'
check 'what is no object of options is told' gave 2 '' '*--with*'
call rm "${open[@]}" --id "$id-clone" "$id" "$id-never"
check 'rm removes it, and one that is gone is no error' all gave 0 '' '' -- is_gone "$id"

# ------------------------------------------------------------------ log and memory

call run "${with[@]}" --log-level debug --log-json -c true
check 'the log is one JSON object a line with level and topic' all test "$status" -eq 0 -- python3 -c '
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert lines and all({"time", "level", "topic", "message"} <= set(line) for line in lines)' "$work/err"
call run "${open[@]}" --log-json --options '{"nosuchoption":1}' -c true
check 'with --log-json the error is an object with its code' gave 125 '' '{*"code":"invalid-argument"*}'
if command -v valgrind > /dev/null; then
    valgrind -q --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=99 \
        "$host" run "${with[@]}" -c 'echo hi; exit 3' > "$work/out" 2> "$work/err" < /dev/null
    status=$? out=$(cat "$work/out") err=$(cat "$work/err")
    check 'valgrind finds no definite leak in a run' gave 3 hi ''
else
    count=$((count + 1))
    echo "ok $count - valgrind finds no definite leak in a run # SKIP no valgrind"
fi

echo "1..$count"
