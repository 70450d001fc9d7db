#!/bin/bash
# templates.sh: builds with secrets, over TLS too, several at once, and what is left of them, through
# host-sim; prints TAP. Needs the engine of DOCKER_HOST, with busybox:latest. ENGINE_LOG is the engine's
# log where that is not a shared one of the tests.
# shellcheck disable=SC2016 # commands are expanded where they run
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/engines/lib.sh
. tests/engines/lib.sh
# shellcheck source=tests/checks/tap.bash
. tests/checks/tap.bash

host=$PWD/build/host-sim/host-sim
open=(--provider "$PWD/build/plugin/docker/docker.so")
work=$(mktemp -d)
token=t$$-$(date +%s%N)
export SECRET="s3cr3t/$token+tail"
made=()

relay=

cleanup() {
    [ -z "$relay" ] || kill "$relay"
    [ ${#made[@]} -eq 0 ] || "$host" templates rm "${open[@]}" "${made[@]}" 2> "$work/err" || cat "$work/err" >&2
    rm -rf "$work"
}
trap cleanup EXIT

# definition FILE OPERATION...: a template that nobody else has.
definition() {
    local file=$work/$1
    shift
    local operations
    operations=$(printf ',%s' "$@")
    printf '{"baseImage":"busybox:latest","operations":[{"method":"setEnvs","args":[{"T":"%s"}]}%s]}' \
        "$token" "$operations" > "$file"
}

# build FILE ARGUMENT...: sets id; output in last.out and last.err.
build() {
    local file=$work/$1 status=0
    shift
    "$host" build "${open[@]}" --log-level debug "$@" "$file" > "$work/last.out" 2> "$work/last.err" || status=$?
    id=$(cat "$work/last.out")
    [ -z "$id" ] || made+=("$id")
    return $status
}

fails_with() { # WORDS FILE ARGUMENT...
    local words=$1
    shift
    ! build "$@" && grep -qF -- "$words" "$work/last.err"
}

secret_step() { # COMMAND OUTPUT [MORE]
    printf '{"method":"runWithSecrets","args":["%s",{"secrets":["SECRET"],"output":"%s"%s}]}' "$1" "$2" "${3:-}"
}

without_secret() { # COMMAND...
    local kept=$SECRET status=0
    unset SECRET
    "$@" || status=$?
    export SECRET=$kept
    return $status
}

run() { # COMMAND
    printf '{"method":"runCmd","args":["%s"]}' "$1"
}

from_env=(--secret SECRET=env:SECRET)

# dangling: how many images of this run have lost their name.
dangling() {
    engine_api '/images/json?filters=%7B%22dangling%22%3A%5B%22true%22%5D%7D' | grep -o '"sprov.template":"[^"]*"' |
        grep -cF "${1#*:}"
}

# An engine removes an image when no container is on its way, however long that takes.
none_dangling() {
    local i
    for ((i = 0; i < 200; i++)); do
        [ "$(dangling "$1")" != 0 ] || return 0
        sleep 0.3
    done
    return 1
}

# forms: the secret in every form that could give it away.
forms() {
    printf '%s\n' "$SECRET"
    printf %s "$SECRET" | base64 -w0 | cut -c1-24
    printf %s "$SECRET" | od -An -tx1 | tr -d ' \n' | cut -c1-40
    echo
    printf %s "$SECRET" | sed 's|/|%2F|g; s|+|%2B|g'
}

if [ -z "${DOCKER_HOST:-}" ]; then
    echo '1..0 # SKIP DOCKER_HOST is not set'
    exit 0
fi

# --------------------------------------------------------------------- secrets stay secret

definition secret.json "$(run 'sleep 3')" \
    "$(secret_step 'test \"$SECRET\" && echo plain $SECRET; printf %s \"$SECRET\" | base64; printf %s \"$SECRET\" | od -An -tx1 | tr -d \" \\\\n\"; sleep 2; printf %s \"$SECRET\" | sha256sum | cut -d\" \" -f1 > /sum' /sum)" \
    "$(run "test \$(cat /sum) = $(printf %s "$SECRET" | sha256sum | cut -d' ' -f1)")"
(
    for _ in $(seq 80); do
        cat /proc/[0-9]*/cmdline 2> "$work/gone" | tr '\0' ' '
        sleep 0.1
    done > "$work/processes"
) &
watcher=$!
check 'a step with a secret of the environment sees it, after a step of three seconds' build secret.json
secret_id=$id
kill "$watcher" 2> "$work/gone"
wait "$watcher" 2> "$work/gone"
cp "$work/last.err" "$work/output"

engine_api "/images/$secret_id/get" -o "$work/image.tar"
engine_api "/images/$secret_id/history" -o "$work/history"
engine_api "/images/$secret_id/json" -o "$work/inspect"
engine_api "/system/df" -o "$work/cache"
log=$engines/$(basename "$(dirname "$(dirname "${DOCKER_HOST#*://}")")")/log
log=${ENGINE_LOG:-$log}
: > "$work/engine.log"
[ ! -r "$log" ] || cp "$log" "$work/engine.log"
mkdir "$work/layers"
tar -C "$work/layers" -xf "$work/image.tar"
find "$work/layers" -type f | while read -r layer; do
    tar -xOf "$layer" > "$layer.plain" 2> "$work/gone"
done
nothing_found() { # WHAT PATH...
    local what
    while read -r what; do
        [ -n "$what" ] || continue
        if grep -rqF -- "$what" "$@"; then
            echo "# found in: $(grep -rlF -- "$what" "$@" | head -n 3 | tr '\n' ' ')"
            return 1
        fi
    done < <(forms)
}
found() { grep -rqF -- "$@"; }
sum=$(printf %s "$SECRET" | sha256sum | cut -d' ' -f1)
check 'the search finds what is in a layer' found "$sum" "$work/layers"
check 'and what ran while it was built' found 'sleep 2' "$work/processes"
check 'the secret is in no layer, history, configuration or cache record' \
    nothing_found "$work/layers" "$work/history" "$work/inspect" "$work/cache"
check 'and in no process list of the machine during the build' nothing_found "$work/processes"
check 'and in nothing that we told or the engine logged' \
    nothing_found "$work/output" "$work/engine.log"
check 'what the step printed is there without it' grep -q 'plain \*\*\*' "$work/output"

definition fails.json "$(secret_step 'echo about $SECRET; exit 9' /sum)"
check 'a step that fails behind a secret is told by its code' \
    fails_with 'failed with exit code 9: about ***' fails.json "${from_env[@]}"
check 'without the secret' nothing_found "$work/last.err"
definition missing.json "$(secret_step true /sum)"
check 'a secret that nobody has is named' without_secret fails_with 'no value for the secret SECRET' missing.json
printf 'line\n' > "$work/line"
check 'a value that ends in a line break is refused' \
    fails_with 'the secret SECRET ends in a line break' missing.json --secret "SECRET=file:$work/line"
definition exact.json \
    "$(secret_step 'test \"$SECRET\" = \"$(printf \"line\\\\n.\" | sed \"s/^\\\\.$//\")\" ; printf %s \"$SECRET\" > /out' /out ',"exact":true')" \
    "$(run 'test $(wc -c < /out) = 5')"
check 'and arrives as it is where the step says exact' build exact.json --secret "SECRET=file:$work/line"
: > "$work/empty"
definition empty.json "$(secret_step 'test -z \"$SECRET\" && test \"${SECRET+set}\" && echo set > /out' /out)"
check 'an empty value is one, and goes before the environment' build empty.json --secret "SECRET=file:$work/empty"
head -c 512000 /dev/zero | tr '\0' x > "$work/big"
head -c 512001 /dev/zero | tr '\0' x > "$work/bigger"
definition big.json "$(secret_step 'printf %s \"$SECRET\" > /out' /out)" "$(run 'test $(wc -c < /out) = 512000')"
check 'a value of 500 KiB arrives whole' build big.json --secret "SECRET=file:$work/big"
check 'a larger one is refused' fails_with 'has 512001 bytes' missing.json --secret "SECRET=file:$work/bigger"

# ------------------------------------------------------------------------------- over TLS

# Encrypts the way to the engine. It asks for no certificate of ours, since socat cannot resume a session
# that had one; tests/long/templates.sh has an engine that does.
case $DOCKER_HOST in
unix://*)
    need_packages socat openssl
    certs=$work/certs
    mkdir "$certs"
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 \
        -keyout "$certs/key.pem" -out "$certs/cert.pem" 2> "$work/gone"
    cp "$certs/cert.pem" "$certs/ca.pem"
    socat -d -d "OPENSSL-LISTEN:0,bind=127.0.0.1,reuseaddr,fork,cert=$certs/cert.pem,key=$certs/key.pem,verify=0" \
        "UNIX-CONNECT:${DOCKER_HOST#unix://}" 2> "$work/relay" &
    relay=$!
    for ((waited = 0; waited < 100; waited++)); do
        port=$(grep -oE 'listening on .*:[0-9]+$' "$work/relay" | grep -oE '[0-9]+$') && break
        sleep 0.1
    done
    over_tls=(env DOCKER_TLS_VERIFY=1 "DOCKER_CERT_PATH=$certs" "DOCKER_HOST=tcp://127.0.0.1:$port")
    ;;
*) over_tls=(env) ;; # it leads there itself
esac
build_over_tls() { # FILE
    "${over_tls[@]}" "$host" build "${open[@]}" --log-level debug "$work/$1" > "$work/last.out" 2> "$work/last.err" || return 1
    made+=("$(cat "$work/last.out")")
}
definition tls.json "$(run 'sleep 6')" "$(secret_step 'printf %s \"$SECRET\" | sha256sum | cut -d\" \" -f1 > /sum' /sum)" \
    "$(run "test \$(cat /sum) = $sum; echo over TLS")"
check 'a secret arrives over TLS, after a step of six seconds' build_over_tls tls.json
check 'and nothing tells it' nothing_found "$work/last.err"

# ------------------------------------------------------------------------ cache and options

definition scope.json "$(secret_step 'echo $SECRET | md5sum > /out' /out)"
prints() { # SUM-OF IMAGE
    "$host" run "${open[@]}" -o "{\"image\":\"$2\"}" -c 'cat /out' > "$work/last.out" 2> "$work/gone"
    [ "$(cat "$work/last.out")" = "$(echo "$1" | md5sum)" ]
}
SECRET=one build scope.json "${from_env[@]}" -o '{"cacheScope":"one"}' > "$work/gone"
"$host" templates rm "${open[@]}" "$id"
SECRET=two build scope.json "${from_env[@]}" -o '{"cacheScope":"two"}' > "$work/gone"
check 'another scope takes no layer of a step with secrets' prints two "$id"
"$host" templates rm "${open[@]}" "$id"
SECRET=three build scope.json "${from_env[@]}" -o '{"cacheScope":"two"}' > "$work/gone"
check 'the same does, whatever the value' prints two "$id"

definition network.json "$(run 'test $(ls /sys/class/net | wc -l) = 1')"
check 'a build without a network has none' build network.json -o '{"network":"none"}'
check 'an option that is none is refused' fails_with 'unknown' network.json -o '{"netwrk":"none"}'
definition token.json '{"method":"setEnvs","args":[{"MY_API_TOKEN":"x"}]}'
build token.json
check 'a variable that looks like a credential is warned of' grep -q 'warning.*MY_API_TOKEN' "$work/last.err"

# ---------------------------------------------------------------------- several, and forced

definition many.json "$(run 'sleep 1; head -c 16 /dev/urandom > /once')"
for i in 1 2 3 4; do
    "$host" build "${open[@]}" "$work/many.json" > "$work/many.$i" 2> "$work/many.err.$i" &
    builders[i]=$!
done
wait "${builders[@]}"
made+=("$(cat "$work/many.1")")
check 'four processes that build at once agree' \
    [ "$(cat "$work"/many.[1-4] | sort -u | wc -l) $(cat "$work"/many.[1-4] | wc -l)" = '1 4' ]
check 'and leave one image' none_dangling "$(cat "$work/many.1")"
build many.json --force
check 'a forced build leaves nothing of the image before' none_dangling "$id"

# --------------------------------------------------------------------------- list and remove

check 'templates ls lists it' found "$id" <("$host" templates ls "${open[@]}" --json)
built_now() { # without a layer of its own: BuildKit gives it the time of its base
    definition plain.json '{"method":"setEnvs","args":[{"A":"b"}]}'
    build plain.json && python3 - "$id" <("$host" templates ls "${open[@]}" --json) \
        <("$host" templates prune "${open[@]}" --json --dry-run) << 'END'
import datetime, json, sys, time
listed, told = ([json.loads(line) for line in open(path)] for path in sys.argv[2:])
created = next(one['created'] for one in listed if one['templateId'] == sys.argv[1])
pruned = next(one['createdAt'] for one in told if one['name'] == sys.argv[1])
then = int(datetime.datetime.fromisoformat(pruned.replace('Z', '+00:00')).timestamp())
sys.exit(created != then or abs(time.time() - created) > 120)
END
}
check 'with the time of its build, as prune has it' built_now
box=box-$token
"$host" start "${open[@]}" --id "$box" -o "{\"template\":\"$id\"}" > "$work/gone" 2>&1
in_use() {
    ! "$host" templates rm "${open[@]}" "$id" 2> "$work/last.err" && grep -q "used by $box" "$work/last.err"
}
check 'one that a sandbox uses is not removed, and the sandbox named' in_use
"$host" rm "${open[@]}" "$box"
check 'then it is' "$host" templates rm "${open[@]}" "$id"
check 'and again, for it is gone' "$host" templates rm "${open[@]}" "$id"

echo "1..$count"
