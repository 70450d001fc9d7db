# Sourced by host-sim/quickstart and the test commands: from a plain Debian 12 machine to a build
# in build/ and an engine that answers. Each step does nothing when its result is there.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
# shellcheck source=tests/engines/lib.sh
. tests/engines/lib.sh

# setup_build OPTION...: builds everything; each OPTION (-Dname=value) is set if it is not.
setup_build() {
    need_packages build-essential meson ninja-build pkg-config python3 musl-tools \
        libcurl4-openssl-dev libjansson-dev libarchive-dev libnghttp2-dev libglib2.0-dev \
        libssl-dev curl ca-certificates
    local option name changed=()
    [ -z "${CI-}" ] || set -- "$@" -Dwerror=true
    if [ ! -e build/build.ninja ]; then
        quietly 'Configuring build/' meson setup build "$@"
    else
        for option in "$@"; do
            name=${option#-D}
            grep -qF -e "\"name\": \"${name%%=*}\", \"value\": ${name#*=}," \
                -e "\"name\": \"${name%%=*}\", \"value\": \"${name#*=}\"," build/meson-info/intro-buildoptions.json ||
                changed+=("$option")
        done
        [ ${#changed[@]} -eq 0 ] || quietly 'Configuring build/ anew' meson setup --reconfigure build "${changed[@]}"
    fi
    quietly 'Building' ninja -C build
}

# need_other_program: what builds the supervisor for aarch64 on x86-64, as options of the build in
# $other_program. Debian's musl-dev for it is unpacked below build/; nothing of that architecture is
# installed. Without it glibc will do.
need_other_program() {
    local apt=build/other-musl.apt musl=$root/build/other-musl options
    other_program=()
    [ "$(uname -m)" = x86_64 ] || return 0
    need_packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross
    other_program=(-Dother_program=enabled "-Dother_musl=$musl")
    [ ! -e "$musl/usr/lib/aarch64-linux-musl/libc.a" ] || return 0
    mkdir -p "$apt/lists/partial" "$apt/archives/partial"
    : > "$apt/status"
    options=(-q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$root/$apt"
        -o Dir::State::status="$root/$apt/status" -o Dir::Cache="$root/$apt" -o APT::Sandbox::User=root)
    say 'Fetching musl-dev for aarch64'
    (
        apt-get "${options[@]}" update && cd "$apt" && apt-get "${options[@]}" download musl-dev &&
            dpkg-deb -x musl-dev_*_arm64.deb "$musl"
    ) > "$apt/log" 2>&1 || say "It can't be had (see $apt/log): the program for aarch64 is built with glibc"
}

# The address of the engine that DOCKER_HOST or the default socket offers, if one answers.
offered_engine() {
    local host
    for host in ${DOCKER_HOST:+"$DOCKER_HOST"} unix:///var/run/docker.sock; do
        if engine_answers "$host"; then
            echo "$host"
            return 0
        fi
    done
    [ -z "${DOCKER_HOST-}" ] || say "No engine answers at DOCKER_HOST=$DOCKER_HOST"
    return 1
}

engine_runs() {
    (select_engine "$1" && engine_pid > /dev/null)
}
