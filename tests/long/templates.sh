#!/bin/bash
# templates.sh: templates for real, on an engine of each version, over its socket and over TLS: packages of
# apt, pip and npm, a secret behind a step of twelve seconds, and the checks of templates and
# repositories. Prints TAP. Needs Debian's mirror and the npm registry; ENGINES chooses the versions.
# shellcheck disable=SC2016 # commands are expanded where they run
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/long/own-engine.sh
. tests/long/own-engine.sh

need_packages openssl python3
unset DOCKER_TLS DOCKER_TLS_VERIFY DOCKER_CERT_PATH DOCKER_CONTEXT DOCKER_API_VERSION
host=$PWD/build/host-sim/host-sim
open=(--provider "$PWD/build/plugin/docker/docker.so")
work=$(mktemp -d)
run=$$-$(date +%s)
tls=$SPROV_ENGINES/shared/templates-$$
index=
up=()

cleanup() {
    [ -z "$index" ] || kill "$index"
    for engine in "${up[@]}"; do
        tests/engines/down "$engine"
    done
    rm -rf "$work" "$tls"
}
trap cleanup EXIT

# --------------------------------------------------------------------------- certificates

mkdir -p "$tls"
request() { # NAME
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" -keyout "$tls/$1key.pem" \
        -out "$work/request" 2> "$work/gone"
}
sign() { # FILE EXTENSION
    openssl x509 -req -in "$work/request" -CA "$tls/ca.pem" -CAkey "$tls/cakey.pem" -set_serial "0x$RANDOM$RANDOM" \
        -days 2 -extfile <(echo "$2") -out "$tls/$1" 2> "$work/gone"
}
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=ca \
    -keyout "$tls/cakey.pem" -out "$tls/ca.pem" 2> "$work/gone"
request server && sign server.pem subjectAltName=IP:127.0.0.1
request client && sign cert.pem extendedKeyUsage=clientAuth && mv "$tls/clientkey.pem" "$tls/key.pem"

# ----------------------------------------------------------------- an index of pip's packages

# The index has one package, "greet", in two versions.
python3 - "$work/index" << 'END'
import os, sys, zipfile
folder = os.path.join(sys.argv[1], 'simple', 'greet')
os.makedirs(folder)
links = ''
for version in '1.0', '2.1':
    name, info = f'greet-{version}-py3-none-any.whl', f'greet-{version}.dist-info'
    with zipfile.ZipFile(os.path.join(folder, name), 'w') as wheel:
        wheel.writestr('greet.py', f'version = "{version}"\n')
        wheel.writestr(f'{info}/METADATA', f'Metadata-Version: 2.1\nName: greet\nVersion: {version}\n')
        wheel.writestr(f'{info}/WHEEL', 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
        wheel.writestr(f'{info}/RECORD', f'greet.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n')
    links += f'<a href="{name}">{name}</a>\n'
with open(os.path.join(folder, 'index.html'), 'w') as page:
    page.write(f'<html><body>{links}</body></html>')
END
port=$(free_port)
python3 -m http.server --bind 127.0.0.1 --directory "$work/index" "$port" > "$work/index.log" 2>&1 &
index=$!

# ----------------------------------------------------------------------------------- builds

# builds NAME BASE OPERATIONS: a template of this run and way alone is built.
builds() {
    printf '{"baseImage":"%s","operations":[{"method":"setEnvs","args":[{"RUN":"%s"}]},%s]}' "$1" "$run-$way" "$2" > "$work/t.json"
    if "$host" build "${open[@]}" -o '{"network":"host"}' "$work/t.json" > "$work/id" 2> "$work/err"; then
        "$host" templates rm "${open[@]}" "$(cat "$work/id")"
        return
    fi
    sed 's/^/# /' "$work/err" | tail -n 20
    return 1
}

method() { # METHOD ARGS: an operation
    printf '{"method":"%s","args":[%s]}' "$1" "$2"
}

export SECRET="behind-twelve-seconds-$run"
sum=$(printf %s "$SECRET" | sha256sum | cut -d' ' -f1)
secret_step="$(method runCmd '"sleep 12"'),$(method runWithSecrets '"sleep 7; printf %s \"$SECRET\" | sha256sum > /sum",{"secrets":["SECRET"],"output":"/sum"}'),$(method runCmd '"grep '"$sum"' /sum"')"
pip="$(method aptInstall '["python3-pip","python3-setuptools","python3-wheel","hello"],{"noInstallRecommends":true}'),$(method setEnvs '{"PIP_INDEX_URL":"http://127.0.0.1:'"$port"'/simple","PIP_BREAK_SYSTEM_PACKAGES":"1"}')"
pip="$pip,$(method pipInstall '["greet<2"]'),$(method runCmd '"hello && python3 -c \"import greet; assert greet.version == chr(49) + \\\".0\\\"\""')"
pip="$pip,$(method pipInstall '"greet==2.1"'),$(method runCmd '"python3 -c \"import greet; assert greet.version == \\\"2.1\\\"\""')"
npm="$(method setEnvs '{"NODE_EXTRA_CA_CERTS":"/etc/ssl/certs/ca-certificates.crt"}'),$(method npmInstall '["is-odd@3.0.1"],{"g":true}'),$(method setWorkdir '"/app"')"
npm="$npm,$(method runCmd '"echo \"{\\\"dependencies\\\":{\\\"is-number\\\":\\\"7.0.0\\\"}}\" > package.json"'),$(method npmInstall '')"
npm="$npm,$(method runCmd '"node -e \"if (!require(\\\"is-number\\\")(5)) process.exit(1)\" && ls $(npm root -g)/is-odd/package.json"')"

# passes SCRIPT: the cases of tests/checks/SCRIPT.sh, numbered on
passes() {
    local line ended=
    while IFS= read -r line; do
        case $line in
        'ok '* | 'not ok '*)
            count=$((count + 1))
            [[ $line =~ ^((not )?ok)\ [0-9]+(.*)$ ]]
            echo "${BASH_REMATCH[1]} $count${BASH_REMATCH[3]} ($way)"
            ;;
        1..*) ended=1 ;;
        *) echo "# ${line#\# }" ;;
        esac
    done < <(timeout 1800 "tests/checks/$1.sh" 2>&1)
    check "$1.sh comes to its end ($way)" [ -n "$ended" ]
}

all_of_it() {
    check "a secret reaches a step behind one of twelve seconds ($way)" builds debian:bookworm-slim "$secret_step"
    check "apt and pip install what was asked for ($way)" builds debian:bookworm-slim "$pip"
    check "npm installs packages and a project ($way)" builds node:22-slim "$npm"
    passes templates
    passes repositories
}

for engine in ${ENGINES:-20.10 26.1}; do
    tls_port=$(free_port)
    up+=("$engine")
    own_engine "$engine" -D -H "tcp://127.0.0.1:$tls_port" --tlsverify --tlscacert "$tls/ca.pem" \
        --tlscert "$tls/server.pem" --tlskey "$tls/serverkey.pem" || exit 1
    export ENGINE_LOG=$SPROV_ENGINES/$engine/log
    way="engine $engine, socket"
    all_of_it
    way="engine $engine, TLS"
    export DOCKER_HOST=tcp://127.0.0.1:$tls_port DOCKER_TLS_VERIFY=1 DOCKER_CERT_PATH=$tls
    all_of_it
    unset DOCKER_TLS_VERIFY DOCKER_CERT_PATH
    tests/engines/down "$engine"
done
echo "1..$count"
