#!/bin/bash
# What `meson install` puts where, and that a host builds against it by pkg-config alone.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

into=$(mktemp -d)
trap 'rm -rf "$into"' EXIT
n=0

check() {
    n=$((n + 1))
    if "${@:2}" > "$into/out" 2>&1; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        sed 's/^/# /' "$into/out"
    fi
}

echo 1..8
DESTDIR=$into/root meson install -C build --no-rebuild > "$into/log" 2>&1 || sed 's/^/# /' "$into/log"
pc=$(find "$into/root" -name sandbox-provider.pc)
export PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$into/root
providers=$into/root$(PKG_CONFIG_SYSROOT_DIR= pkg-config --variable=providersdir sandbox-provider)

check 'the provider lies in providersdir, its implementation beside it' \
    test -e "$providers/docker.so" -a -e "$providers/docker-provider.impl"
check 'the schemas are there' \
    test -e "$into/root/usr/local/share/sandbox-provider/schema/sandbox.json"
check 'host-sim is in bindir' test -x "$into/root/usr/local/bin/host-sim"
check 'docker.so exports one symbol' \
    test "$(nm -D --defined-only "$providers/docker.so" | awk '{ print $3 }')" = sprov_entry_v1
check 'local.so lies there too, and exports one symbol' \
    test "$(nm -D --defined-only "$providers/local.so" | awk '{ print $3 }')" = sprov_entry_v1
# shellcheck disable=SC2046
check 'a host compiles against the installed headers' \
    cc -Werror $(pkg-config --cflags sandbox-provider) docs/examples/host.c -ldl -o "$into/host"
check 'its profiles are found by name, also in a tree that was moved' \
    "$into/root/usr/local/bin/host-sim" check "$providers/local.so" --profile local --include ABI-01
check 'a bare name is found in SANDBOX_PROVIDER_PATH' \
    env SANDBOX_PROVIDER_PATH="$providers" build/host-sim/host-sim info docker
