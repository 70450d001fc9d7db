#!/bin/bash
# repositories.sh: templates of Git repositories, public and private, from a server with a CA of its
# own; prints TAP. Needs the engine of DOCKER_HOST on this machine, with debian:bookworm-slim.
# shellcheck disable=SC2016 # commands are expanded where they run
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/checks/repositories.bash
. tests/checks/repositories.bash

mkfifo "$work/commands" "$work/told"
host-sim/hooks/git.py < "$work/commands" > "$work/told" 2> "$work/server.err" &
exec 9> "$work/commands" # it ends with us
read -r told < "$work/told"
told() { # KEY...: a value of what the server told
    python3 -c 'import json, sys
value = json.loads(sys.argv[1])
for key in sys.argv[2:]:
    value = value[key]
print(value)' "$told" "$@"
}
url=$(told url)
TOKEN=$(told token)
GIT_SSL_CAINFO=$(told environment GIT_SSL_CAINFO)
export TOKEN GIT_SSL_CAINFO
first="" main="" tagged="" pulled="" newest=""
for name in first main tagged pulled newest; do
    declare "$name=$(told commits "$name")"
done
build_base "$(told trust)"

repository main.json app.git '"ref":"main"'
check 'a branch is found though another ends like it' is_at "$main" main.json
repository head.json app.git
check 'without a ref it is HEAD' is_at "$main" head.json
repository tag.json app.git '"ref":"v1"'
check 'an annotated tag is its commit' is_at "$tagged" tag.json
repository short.json app.git "\"ref\":\"${newest:0:9}\""
check 'a shortened commit is found at the head of a branch' is_at "$newest" short.json
repository past.json app.git "\"ref\":\"${first:0:10}\""
check 'and in the history of one' is_at "$first" past.json
repository full.json app.git "\"ref\":\"$tagged\""
check 'a whole commit needs no server to be found' is_at "$tagged" full.json
repository pull.json app.git '"ref":"refs/pull/7/head","clone":"shallow"'
check 'a shallow clone reaches the head of a pull request' is_at "$pulled" pull.json
check 'and has nothing else' [ "$(in_image 'git rev-list --count HEAD')" = 1 ]
repository none.json app.git '"ref":"nothing"'
check 'a ref that is none is named' fails_with 'no branch, tag or full ref name "nothing"' none.json
repository gone.json gone.git
check 'what git says is told' fails_with 'not found' gone.json
repository silent.json silent/app.git
check 'a server that is silent is given up' fails_with 'within 10 s' silent.json
without_git() {
    ! PATH=/nonexistent "$host" build "${open[@]}" "$work/main.json" > "$work/last.out" 2> "$work/last.err" &&
        grep -qF 'install git 2.31' "$work/last.err"
}
check 'a machine without git is told what it lacks' without_git

repository all.json app.git '"setupCommand":["echo $GREETING > greeting"," ","test \"$(pwd)\" = /srv/app"],"buildEnv":{"GREETING":"hello"},"workingDirectory":"/srv/","owner":"nobody"'
check 'setup commands run in the checkout with their environment' build all.json
check 'and leave their mark and an owner' \
    [ "$(in_image 'cat greeting; cut -c1-7 .mastra-sandbox/setup; stat -c %U . greeting .git/HEAD')" = $'hello\nsha256:\nnobody\nnobody\nnobody' ]

# ---------------------------------------------------------------------------------- private

nothing_found() { # PATH...
    local what
    for what in "$TOKEN" "$(printf %s "x-access-token:$TOKEN" | base64 -w0 | cut -c25-50)"; do
        ! grep -rqF -- "$what" "$@" || return 1
    done
}
repository private.json private/app.git
check 'a private repository without a token is denied' fails_with 'git:' private.json
check 'by its own words' grep -q 'Username\|Authentication' "$work/last.err"
check 'and so with a wrong one' env WRONG=x bash -c "! '$host' build ${open[*]} --secret GH_TOKEN=env:WRONG '$work/private.json' 2> '$work/gone'"
(
    for _ in $(seq 60); do
        cat /proc/[0-9]*/cmdline 2> "$work/gone" | tr '\0' ' '
        sleep 0.05
    done > "$work/processes"
) &
watcher=$!
check 'with its token it is built' build private.json --secret GH_TOKEN=env:TOKEN --log-level debug
kill "$watcher" 2> "$work/gone"
wait "$watcher" 2> "$work/gone"
engine_api "/images/$id/history" -o "$work/history"
engine_api "/images/$id/json" -o "$work/inspect"
in_image 'cat .git/config; env; ls -a /run/secrets 2>&1' > "$work/inside"
check 'git ran while it was built' grep -q 'git clone\|git-remote' "$work/processes"
check 'the token is in no process list' nothing_found "$work/processes"
check 'nor in the image, nor in what we told' \
    nothing_found "$work/history" "$work/inspect" "$work/inside" "$work/last.err"

box=repository-$$
boots() { "$host" start "${open[@]}" --id "$box" -o "{\"template\":$(cat "$work/private.json")}" "$@" > "$work/gone" 2> "$work/last.err"; }
denied() { ! boots && grep -qF 'git:' "$work/last.err"; }
check 'a sandbox of the repository asks for it without a token in vain' denied
check 'and with it finds the template' boots --secret GH_TOKEN=env:TOKEN
"$host" rm "${open[@]}" "$box"

# --------------------------------------------------------------------------------- describe

"$host" template describe "${open[@]}" --sha "$main" "$work/main.json" > "$work/described"
build main.json
check 'describe tells the id that a build has' grep -qF "\"templateId\":\"$id\"" "$work/described"

echo "1..$count"
