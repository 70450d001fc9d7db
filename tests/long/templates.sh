#!/bin/bash
# templates.sh: templates that take their time: packages of apt, pip and npm from where they come, and
# a secret behind a step of twelve seconds; prints TAP. Needs the engine of DOCKER_HOST, with
# debian:bookworm-slim and node:22-slim, Debian's mirror and the npm registry.
# shellcheck disable=SC2016 # commands are expanded where they run
set -u
cd "$(dirname "$0")/../.." || exit 1

host=$PWD/build/host-sim/host-sim
open=(--provider "$PWD/build/plugin/docker/docker.so")
work=$(mktemp -d)
run=$$-$(date +%s)
made=()
count=0

cleanup() {
    [ ${#made[@]} -eq 0 ] || "$host" templates rm "${open[@]}" "${made[@]}"
    rm -rf "$work"
}
trap cleanup EXIT

if [ -z "${DOCKER_HOST:-}" ]; then
    echo '1..0 # SKIP DOCKER_HOST is not set'
    exit 0
fi

# builds NAME BASE OPERATIONS: a template of this run alone is built.
builds() {
    local verdict=ok id
    count=$((count + 1))
    printf '{"baseImage":"%s","operations":[{"method":"setEnvs","args":[{"RUN":"%s"}]},%s]}' "$2" "$run" "$3" > "$work/t.json"
    if id=$("$host" build "${open[@]}" "$work/t.json" 2> "$work/err"); then
        made+=("$id")
    else
        verdict='not ok'
        sed 's/^/# /' "$work/err" | tail -n 20
    fi
    echo "$verdict $count - $1"
}

export SECRET="behind-twelve-seconds-$run"
sum=$(printf %s "$SECRET" | sha256sum | cut -d' ' -f1)
builds 'a secret reaches a step behind one of twelve seconds' debian:bookworm-slim \
    '{"method":"runCmd","args":["sleep 12"]},{"method":"runWithSecrets","args":["sleep 7; printf %s \"$SECRET\" | sha256sum > /sum",{"secrets":["SECRET"],"output":"/sum"}]},{"method":"runCmd","args":["grep '"$sum"' /sum"]}'
builds 'apt and pip install what was asked for' debian:bookworm-slim \
    '{"method":"aptInstall","args":[["python3-pip","python3-setuptools","python3-wheel","hello"],{"noInstallRecommends":true}]},{"method":"runCmd","args":["hello; mkdir -p /pkg && cd /pkg && echo \"from setuptools import setup; setup(name=\\\"greet\\\", version=\\\"2.1\\\", py_modules=[\\\"greet\\\"])\" > setup.py && echo \"word = 5\" > greet.py"]},{"method":"pipInstall","args":[["--break-system-packages","--no-index","--no-build-isolation","/pkg"]]},{"method":"runCmd","args":["cd / && rm -r /pkg && python3 -c \"import greet; assert greet.word == 5\""]}'
builds 'npm installs packages and a project' node:22-slim \
    '{"method":"setEnvs","args":[{"NODE_EXTRA_CA_CERTS":"/etc/ssl/certs/ca-certificates.crt"}]},{"method":"npmInstall","args":[["is-odd@3.0.1"],{"g":true}]},{"method":"setWorkdir","args":["/app"]},{"method":"runCmd","args":["echo \"{\\\"dependencies\\\":{\\\"is-number\\\":\\\"7.0.0\\\"}}\" > package.json"]},{"method":"npmInstall","args":[]},{"method":"runCmd","args":["node -e \"if (!require(\\\"is-number\\\")(5)) process.exit(1)\" && ls $(npm root -g)/is-odd/package.json"]}'

echo "1..$count"
