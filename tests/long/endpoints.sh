#!/bin/bash
# endpoints.sh: an engine over unix, tcp, TLS and ssh: the conformance suite's first level over each,
# and everything that must be refused, by its reason. Prints TAP. Brings up an engine and an sshd.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/long/own-engine.sh
. tests/long/own-engine.sh

need_packages openssl openssh-server openssh-client python3
command -v docker > /dev/null || need_packages docker.io
unset DOCKER_TLS DOCKER_TLS_VERIFY DOCKER_CERT_PATH DOCKER_CONTEXT CONTAINER_HOST DOCKER_API_VERSION
engine=${ENGINE:-26.1}
host=$PWD/build/host-sim/host-sim
provider=$PWD/build/plugin/docker/docker.so
work=$(mktemp -d)
tls=$SPROV_ENGINES/shared/tls-$$
children=()

# vanish -I|-D PORT: a command by which every packet to and from it is lost, or passes again
vanish() {
    printf 'iptables %s INPUT -i lo -p tcp --dport %s -j DROP && iptables %s INPUT -i lo -p tcp --sport %s -j DROP' "$1" "$2" "$1" "$2"
}

cleanup() {
    local port
    for port in $plain_port $tls_port $ssh_port; do
        sh -c "$(vanish -D "$port")" 2> /dev/null
    done
    kill "${children[@]}" 2> /dev/null
    cat "$work"/between-* 2> /dev/null | xargs -r kill 2> /dev/null
    tests/engines/down "$engine"
    rm -rf "$work" "$tls"
}
trap cleanup EXIT

# ------------------------------------------------------------------------- certificates

# authority NAME
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3 \
        -subj "/CN=$1" -keyout "$tls/$1-key.pem" -out "$tls/$1.pem" 2> /dev/null
}

# certificate NAME AUTHORITY DAYS EXTENSION...
certificate() {
    local name=$1 by=$2 days=$3
    shift 3
    printf '%s\n' "$@" > "$work/extensions"
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$name" \
        -keyout "$tls/$name-key.pem" -out "$work/request" 2> /dev/null
    openssl x509 -req -in "$work/request" -CA "$tls/$by.pem" -CAkey "$tls/$by-key.pem" \
        -set_serial "0x$RANDOM$RANDOM" -days "$days" -extfile "$work/extensions" -out "$tls/$name.pem" 2> /dev/null
}

mkdir -p "$SPROV_ENGINES/shared" "$tls"
for name in ca other; do
    authority $name
done
here=subjectAltName=DNS:localhost,IP:127.0.0.1
certificate server ca 2 "$here" extendedKeyUsage=serverAuth
certificate expired ca 0 "$here"
certificate elsewhere ca 2 subjectAltName=DNS:elsewhere.example,IP:127.9.9.9
certificate client ca 2 extendedKeyUsage=clientAuth
certificate stranger other 2 extendedKeyUsage=clientAuth

# -------------------------------------------------------------------------- the servers

tls_port=$(free_port)
own_engine "$engine" -H "tcp://127.0.0.1:$tls_port" --tlsverify --tlscacert "$tls/ca.pem" \
    --tlscert "$tls/server.pem" --tlskey "$tls/server-key.pem" || exit 1
socket=${DOCKER_HOST#unix://}
own_host=$DOCKER_HOST
unset DOCKER_HOST

relay() { # prints the address of a relay from tcp to the engine
    local waited
    build/tests/wire/wire-proxy --listen tcp:127.0.0.1:0 --engine "unix:$socket" --control "$work/control" > "$work/relay" &
    children+=($!)
    for ((waited = 0; waited < 100; waited++)); do
        [ ! -s "$work/relay" ] || return 0
        sleep 0.1
    done
}

s_server() { # PORT CERTIFICATE OPTION...
    openssl s_server -accept "127.0.0.1:$1" -cert "$tls/$2.pem" -key "$tls/$2-key.pem" -quiet "${@:3}" \
        > "$work/s_server" 2>&1 < /dev/null &
    children+=($!)
}

listens() { # PORT
    local waited
    for ((waited = 0; waited < 100; waited++)); do
        ! (: < "/dev/tcp/127.0.0.1/$1") 2> /dev/null || return 0
        sleep 0.1
    done
    return 1
}

relay
plain_port=$(sed 's/.*://' "$work/relay")
expired_port=$(free_port) && s_server "$expired_port" expired
elsewhere_port=$(free_port) && s_server "$elsewhere_port" elsewhere
old_port=$(free_port) && s_server "$old_port" server -tls1_1 -cipher 'ALL:@SECLEVEL=0'
text_port=$(free_port)
python3 -m http.server --bind 127.0.0.1 --directory "$work" "$text_port" > /dev/null 2>&1 &
children+=($!)
deaf_port=$(free_port) # takes connections and never says a word
python3 -c 'import socket, sys, time
s = socket.socket()
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen(64)
time.sleep(3600)' "$deaf_port" &
children+=($!)

ssh_port=$(free_port)
for key in host user wrong; do
    ssh-keygen -q -t ed25519 -N '' -f "$work/$key"
done
cp "$work/user.pub" "$work/authorized"
printf '%s\n' "Port $ssh_port" 'ListenAddress 127.0.0.1' "HostKey $work/host" "PidFile $work/sshd.pid" \
    "AuthorizedKeysFile $work/authorized" 'StrictModes no' 'UsePAM no' 'PasswordAuthentication no' \
    'PermitRootLogin prohibit-password' "SetEnv HOME=$work DOCKER_HOST=$own_host" > "$work/sshd_config"
ssh_config() { # FILE KEY KNOWN-HOST-KEY
    echo "* $(cut -d' ' -f1,2 "$work/$3.pub")" > "$1.known"
    printf '%s\n' 'Host *' " IdentityFile $work/$2" ' IdentitiesOnly yes' " UserKnownHostsFile $1.known" \
        ' GlobalKnownHostsFile /dev/null' ' StrictHostKeyChecking yes' > "$1"
}
ssh_config "$work/ssh" user host
ssh_config "$work/ssh-wrong-key" wrong host
ssh_config "$work/ssh-wrong-host" user wrong
mkdir -p /run/sshd
"$(command -v sshd || echo /usr/sbin/sshd)" -D -f "$work/sshd_config" 2> "$work/sshd.log" &
sshd_pid=$!
children+=($!)
for port in $tls_port $plain_port $expired_port $elsewhere_port $old_port $text_port $ssh_port; do
    listens "$port" || echo "# nothing listens on $port"
done

# ------------------------------------------------------------------- the suite over each

# passes_level_1 CONFIG [OPTIONS]
passes_level_1() {
    local more=${2:-'"transport":"stream"'}
    "$host" check "$provider" --level 1 --time-scale 3 --config "$1" \
        --options '{"image":"debian:bookworm-slim",'"$more}" > "$work/check.out" 2>&1 < /dev/null && return 0
    grep -E '^(not ok|#|FAIL)' "$work/check.out" | head -n 40 | sed 's/^/# /'
    tail -n 3 "$work/check.out" | sed 's/^/# /'
    return 1
}

# runs CONFIG [VARIABLE=VALUE...]: a command with input and output through everything there is
runs() {
    local config=$1 id=endpoints-$$-$RANDOM status
    shift
    env "$@" "$host" run --provider "$provider" --config "$config" --id "$id" \
        --options '{"image":"debian:bookworm-slim","transport":"stream"}' -c 'wc -c' < <(head -c 3000000 /dev/zero) > "$work/run.out" 2> "$work/run.err"
    status=$?
    [ $status -eq 0 ] && grep -qx 3000000 "$work/run.out" && return 0
    sed 's/^/# /' "$work/run.err"
    return 1
}

over_unix='{"host":"unix://'$socket'"}'
over_tcp='{"host":"127.0.0.1","port":'$plain_port'}'
over_tls='{"host":"tcp://localhost:'$tls_port'","ca":"'$tls'/ca.pem","cert":"'$tls'/client.pem","key":"'$tls'/client-key.pem"}'
over_ssh='{"host":"ssh://root@127.0.0.1:'$ssh_port$socket'","sshConfig":"'$work'/ssh"}'

check 'the first level passes over unix' passes_level_1 "$over_unix"
check 'the first level passes over tcp' passes_level_1 "$over_tcp"
check 'the first level passes over TLS' passes_level_1 "$over_tls"
check 'the first level passes over ssh' passes_level_1 "$over_ssh"
for transport in tcp tls ssh; do
    name=over_$transport
    check "and over $transport by engine execs alone" passes_level_1 "${!name}" '"supervisor":"off"'
done

# builds CONFIG: a template with a secret, by a session beside the build
builds() {
    local id sum
    sum=$(printf %s "secret-$$" | sha256sum | cut -d' ' -f1)
    printf '{"baseImage":"debian:bookworm-slim","operations":[{"method":"setEnvs","args":[{"RUN":"%s"}]},%s]}' "$RANDOM-$$" \
        '{"method":"runWithSecrets","args":["printf %s \"$SECRET\" | sha256sum > /sum && grep '"$sum"' /sum",{"secrets":["SECRET"],"output":"/sum"}]}' \
        > "$work/template.json"
    id=$(SECRET=secret-$$ "$host" build --provider "$provider" --config "$1" "$work/template.json" 2> "$work/build.err") &&
        "$host" templates rm --provider "$provider" --config "$1" "$id" 2>> "$work/build.err" && return 0
    tail -n 5 "$work/build.err" | sed 's/^/# /'
    return 1
}

for transport in unix tcp tls ssh; do
    name=over_$transport
    check "a template with a secret is built over $transport" builds "${!name}"
done
for transport in tcp tls ssh; do
    name=over_$transport plain='{"image":"debian:bookworm-slim","supervisor":"off"}'
    check "input ends by half-close over $transport, by an exec of the engine" \
        bash -c 'head -c 3000000 /dev/zero | "$0" run --provider "$1" --config "$2" --id "$3" --options "$4" -c "wc -c" | grep -qx 3000000' \
        "$host" "$provider" "${!name}" "half-$$-$transport" "$plain"
done

# As a host may be: no room on the stack, signals that nobody waits for, no standard input.
poor_host() {
    (
        ulimit -s 128
        env --ignore-signal=CHLD --ignore-signal=PIPE "$host" run --provider "$provider" --config "$1" \
            --id "poor-$$-$RANDOM" --options '{"image":"debian:bookworm-slim","transport":"stream"}' -c 'echo reached' <&-
    ) > "$work/run.out" 2> "$work/run.err" && grep -qx reached "$work/run.out" && return 0
    sed 's/^/# /' "$work/run.err"
    return 1
}
for transport in tcp tls ssh; do
    name=over_$transport
    check "a host with 128 KiB of stack and ignored signals gets there over $transport" poor_host "${!name}"
done

# Threads with small stacks, no standard streams, signals of any disposition, a host that waits for all children.
guests() { # CONFIG
    DOCKER_HOST=unix://$socket REACH_CONFIG=$1 timeout 600 build/tests/integration/test_guest --tap --jobs 1 \
        > "$work/guest.out" 2>&1 < /dev/null && return 0
    grep -E -A2 '^ *(not ok|- )' "$work/guest.out" | sed 's/^ */# /' | head -n 60
    return 1
}
for transport in tcp tls ssh; do
    name=over_$transport
    check "hosts of every kind get there over $transport" guests "${!name}"
done

# -------------------------------------------------------------- many calls, and a dead line

# reaches TEST PORT CONFIG [COMMAND]
reaches() {
    : > "$work/notes"
    DOCKER_HOST=unix://$socket REACH_CONFIG=$3 REACH_CUT=$(vanish -I "$2") REACH_MEND=$(vanish -D "$2") REACH_CLOSE=${4:-} \
        SPROV_TEST_NOTES=$work/notes timeout 900 build/tests/integration/long_reach --tap --jobs 1 --filter "reach/$1" \
        > "$work/reach.out" 2>&1 < /dev/null
    local result=$?
    cat "$work/notes"
    [ $result = 0 ] && return 0
    grep -E -A2 '^ *(not ok|- )' "$work/reach.out" | sed 's/^ */# /' | head -n 60
    return 1
}

for transport in tcp tls ssh; do
    name=over_$transport port=${transport/tcp/plain}_port
    check "a crowd of calls gets there at once over $transport" reaches 'takes_a_crowd*' "${!port}" "${!name}"
    if iptables -S INPUT > /dev/null 2>&1; then
        check "a line that went dead without a word is noticed and replaced over $transport" \
            reaches 'notices_a_line*' "${!port}" "${!name}"
    else
        count=$((count + 1))
        echo "ok $count - a line that went dead over $transport # SKIP this needs iptables"
    fi
done

limited() { # TARGET: the port of something before it that takes 6 connections at a time
    python3 tests/long/limited.py 6 "$1" > "$work/limited-port" &
    children+=($!)
    for ((waited = 0; waited < 100; waited++)); do
        [ ! -s "$work/limited-port" ] || break
        sleep 0.1
    done
    limited_port=$(cat "$work/limited-port")
    rm "$work/limited-port"
}
for transport in tcp tls ssh; do
    name=over_$transport port=${transport/tcp/plain}_port
    limited "${!port}"
    config=${!name}
    check "calls may be tried again that are refused a connection over $transport" \
        reaches 'bears_it*' 0 "${config/${!port}/$limited_port}"
done

# Resets the engine's end of every connection to a port.
reset_port() {
    ss -K -n state established "sport = :$1"
}

# Ends what stands between us and a port, as a machine does that is switched off, and puts a new one there.
end_between() { # PORT TO
    local waited
    [ ! -e "$work/between-$1" ] || kill -KILL "$(cat "$work/between-$1")"
    for ((waited = 0; waited < 100; waited++)); do
        setsid build/tests/wire/wire-proxy --listen "tcp:127.0.0.1:$1" --engine "tcp:127.0.0.1:$2" \
            --control "$work/control-$1" < /dev/null > "$work/listens-$1" 2> "$work/between.log" &
        echo $! > "$work/between-$1"
        sleep 0.1
        [ ! -s "$work/listens-$1" ] || return 0
    done
    cat "$work/between.log" >&2
    return 1
}

end_ssh_clients() {
    grep -lszFx -e "$work/ssh" /proc/[0-9]*/cmdline | xargs -r grep -lszFx dial-stdio | cut -d/ -f3 | xargs -r kill -KILL
}

end_ssh_sessions() {
    ps -o pid= --ppid "$sshd_pid" | xargs -r kill -KILL
}
# For the test's shell, which would lose exported functions.
{
    declare -p work sshd_pid
    declare -f reset_port end_between end_ssh_clients end_ssh_sessions
} > "$work/lines"
by="bash -c '. $work/lines;"

between() { # PORT: the port of something between it and us
    local port
    port=$(free_port)
    end_between "$port" "$1" && echo "$port"
}

near_plain_port=$(between "$plain_port")
near_tls_port=$(between "$tls_port")
near_tcp=${over_tcp/$plain_port/$near_plain_port}
near_tls=${over_tls/$tls_port/$near_tls_port}
closed='ends_at_once*'
check 'what runs ends at once when the engine resets its connections over tcp' \
    reaches "$closed" 0 "$over_tcp" "$by reset_port $plain_port'"
check 'and when somebody between ends' reaches "$closed" 0 "$near_tcp" "$by end_between $near_plain_port $plain_port'"
check 'what runs ends at once when the engine resets its connections over TLS' \
    reaches "$closed" 0 "$over_tls" "$by reset_port $tls_port'"
check 'and when somebody between ends there' reaches "$closed" 0 "$near_tls" "$by end_between $near_tls_port $tls_port'"
check 'what runs ends at once when its ssh is killed' reaches "$closed" 0 "$over_ssh" "$by end_ssh_clients'"
check 'and when its session of sshd is' reaches "$closed" 0 "$over_ssh" "$by end_ssh_sessions'"

# ------------------------------------------------------------ the environment and contexts

cp "$tls/ca.pem" "$work/ca.pem"
cp "$tls/client.pem" "$work/cert.pem"
cp "$tls/client-key.pem" "$work/key.pem"
check 'DOCKER_TLS_VERIFY and DOCKER_CERT_PATH reach an engine by TLS' \
    runs '{}' "DOCKER_HOST=tcp://127.0.0.1:$tls_port" DOCKER_TLS_VERIFY=1 "DOCKER_CERT_PATH=$work"
mkdir -p "$work/strange"
cp "$tls/other.pem" "$work/strange/ca.pem"
cp "$work/cert.pem" "$work/key.pem" "$work/strange/"
check 'DOCKER_TLS alone reaches one whose certificate nobody vouches for' \
    runs '{}' "DOCKER_HOST=tcp://127.0.0.1:$tls_port" DOCKER_TLS=1 "DOCKER_CERT_PATH=$work/strange"
check 'an address of ssh alone means the engine that docker finds there' \
    runs '{"host":"ssh://root@127.0.0.1:'"$ssh_port"'","sshConfig":"'"$work"'/ssh"}'
check 'CONTAINER_HOST is followed' runs '{}' "CONTAINER_HOST=$own_host"
check 'an older version of the API serves as well' runs '{}' "DOCKER_HOST=$own_host" DOCKER_API_VERSION=1.40
check 'a configuration can keep the environment out' \
    runs '{"host":"'"$own_host"'","environment":false}' DOCKER_HOST=tcp://nowhere:1 DOCKER_TLS_VERIFY=1
if [ ! -e /var/run/docker.sock ]; then
    mkdir -p "$work/runtime" && ln -s "$socket" "$work/runtime/docker.sock"
    check 'the socket of a rootless engine is found' runs '{}' "XDG_RUNTIME_DIR=$work/runtime"
fi
check 'a key from a file of the command line reaches one' \
    "$host" run --provider "$provider" --id "endpoints-$$-file" --options '{"image":"debian:bookworm-slim"}' --config \
    '{"host":"tcp://localhost:'"$tls_port"'","ca":"'"$tls"'/ca.pem","cert":"'"$tls"'/client.pem","keySecret":"engine-key"}' \
    --secret "engine-key=file:$tls/client-key.pem" -c true
check 'a key that the host answers for and no file holds reaches one too' \
    runs '{"host":"tcp://localhost:'"$tls_port"'","ca":"'"$tls"'/ca.pem","cert":"'"$tls"'/client.pem","keySecret":"ENGINE_KEY"}' \
    "ENGINE_KEY=$(cat "$tls/client-key.pem")"
export DOCKER_CONFIG=$work/docker
docker context create own --docker \
    "host=tcp://127.0.0.1:$tls_port,ca=$work/ca.pem,cert=$work/cert.pem,key=$work/key.pem" > /dev/null 2>&1
check 'a context that docker made is followed by DOCKER_CONTEXT' runs '{}' DOCKER_CONTEXT=own
check 'or by the configuration' runs '{"context":"own"}' DOCKER_HOST=tcp://nowhere:1
docker context use own > /dev/null 2>&1
check 'and when it is the current one' runs '{}' DOCKER_CONTEXT=
check 'a proxy of the environment plays no part' runs "$over_unix" \
    http_proxy=http://127.0.0.1:1 HTTP_PROXY=http://127.0.0.1:1 ALL_PROXY=http://127.0.0.1:1
unset DOCKER_CONFIG

# ---------------------------------------------------------------------- what is refused

# refused CONFIG TEXT SECONDS: the first call fails in time, and its error says so
refused() {
    local begin=$SECONDS
    "$host" exec --provider "$provider" --config "$1" --id "endpoints-$$" -c true > "$work/out" 2> "$work/err" < /dev/null &&
        return 1
    if grep -qF "$2" "$work/err" && [ $((SECONDS - begin)) -le "$3" ] && [ ! -s "$work/out" ]; then
        return 0
    fi
    sed "s/^/# after $((SECONDS - begin)) s: /" "$work/err"
    return 1
}

check 'a context that does not exist is an error' refused '{"context":"nowhere"}' nowhere 5
DOCKER_CONTEXT=nowhere check 'also where the environment names it' refused '{}' nowhere 5
DOCKER_HOST=tcp://127.0.0.1:$tls_port DOCKER_TLS_VERIFY=1 DOCKER_CERT_PATH=$work/nowhere \
    check 'so is a certificate that is not there' refused '{}' "$work/nowhere" 5

tls_to() { # PORT CA CERTIFICATE KEY: a configuration
    echo '{"host":"https://127.0.0.1:'"$1"'","ca":"'"$tls/$2"'.pem","cert":"'"$tls/$3"'.pem","key":"'"$tls/$4"'-key.pem"}'
}

check 'an engine of another authority is refused' refused "$(tls_to "$tls_port" other client client)" 'not to be trusted' 5
check 'without an authority only the systems count' refused '{"host":"https://127.0.0.1:'"$tls_port"'"}' 'not to be trusted' 5
check 'an expired certificate is refused' refused "$(tls_to "$expired_port" ca client client)" 'has expired' 5
check 'a certificate for another name is refused' refused "$(tls_to "$elsewhere_port" ca client client)" 'for another address' 5
check 'a client of another authority is refused by the engine' \
    refused "$(tls_to "$tls_port" ca stranger stranger)" \
    "https://127.0.0.1:$tls_port: it refuses our client certificate ($tls/stranger.pem with $tls/stranger-key.pem)" 5
check 'a client without a certificate is refused by the engine' \
    refused '{"host":"https://127.0.0.1:'"$tls_port"'","ca":"'"$tls"'/ca.pem"}' 'wants a client certificate' 5
check 'the key of another certificate is refused' refused "$(tls_to "$tls_port" ca client stranger)" 'belongs to another certificate' 5
check 'plain text on a TLS port is refused' refused "$(tls_to "$text_port" ca client client)" 'does not speak TLS' 5
check 'TLS before 1.2 is refused' refused "$(tls_to "$old_port" ca client client)" 'no TLS of version 1.2 or later' 5
check 'clear text to a TLS port is refused' refused '{"host":"http://127.0.0.1:'"$tls_port"'"}' \
    "tcp://127.0.0.1:$tls_port wants HTTPS" 5
check 'a port that speaks something else is told' refused '{"host":"tcp://127.0.0.1:'"$ssh_port"'"}' 'does not speak HTTP' 5
check 'a port where nobody listens is named' refused '{"host":"tcp://127.0.0.1:1"}' 'tcp://127.0.0.1:1 (Connection refused)' 5
check 'a host that does not exist is named' refused '{"host":"tcp://no.such.host.invalid:2375"}' no.such.host.invalid 15
check 'a TLS port that never says a word is given up' refused "$(tls_to "$deaf_port" ca client client)" 'took the connection and said nothing' 30
check 'ssh with a wrong key is refused in its words' \
    refused "${over_ssh%/ssh*}/ssh-wrong-key\"}" 'Permission denied' 15
check 'and the command to try is told' refused "${over_ssh%/ssh*}/ssh-wrong-key\"}" \
    "ssh -F $work/ssh-wrong-key -p $ssh_port root@127.0.0.1 docker version" 15
check 'ssh to a host of another key is refused in its words' \
    refused "${over_ssh%/ssh*}/ssh-wrong-host\"}" 'Host key verification failed' 15
check 'ssh to a machine whose engine is not there is told in dockers words' \
    refused "${over_ssh/docker.sock/none.sock}" none.sock 15

# --------------------------------------------------------------------- what leaks nowhere

# The log of everything, what processes are called by, and an error, while the key is in use.
use_key_in_sight() {
    local id=endpoints-$$-key open=(--provider "$provider" --log-level debug --config
        '{"host":"tcp://localhost:'"$tls_port"'","ca":"'"$tls"'/ca.pem","cert":"'"$tls"'/client.pem","keySecret":"ENGINE_KEY"}')
    ENGINE_KEY=$(cat "$tls/client-key.pem") "$host" run "${open[@]}" --id "$id" \
        --options '{"image":"debian:bookworm-slim","transport":"stream"}' -c 'sleep 2; exit 0' > "$work/key.out" 2> "$work/key.err" &
    while kill -0 $! 2> /dev/null; do
        cat /proc/[0-9]*/cmdline >> "$work/ps.out" 2> /dev/null
        sleep 0.1
    done
    wait $! || return 1
    ENGINE_KEY=$(cat "$tls/stranger-key.pem") "$host" exec "${open[@]}" --id "$id" -c true >> "$work/key.out" 2>> "$work/key.err" && return 1
    grep -q 'debug: engine' "$work/key.err" && grep -q 'another certificate' "$work/key.err"
}

leaks_nothing() {
    local name form
    for name in client stranger; do
        for form in "$(sed -n 2p "$tls/$name-key.pem")" 'PRIVATE KEY' \
            "$(openssl pkey -in "$tls/$name-key.pem" -outform DER | od -An -v -tx1 -j 36 -N 24 | tr -d ' \n')"; do
            ! grep -rqsiF -e "$form" "$work"/*.out "$work"/*.err "$work"/err "$work"/sshd.log || return 1
        done
    done
}
check 'a key that the host answers for is used' use_key_in_sight
check 'no key is in any output' leaks_nothing
check 'no ssh is left behind' bash -c '! grep -lszF "$0" /proc/[0-9]*/cmdline | grep -v "/$$/" | xargs -r grep -lsF dial-stdio' "$work/ssh"
echo "1..$count"
