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
            grep -qF "\"name\": \"${name%%=*}\", \"value\": ${name#*=}," build/meson-info/intro-buildoptions.json ||
                changed+=("$option")
        done
        [ ${#changed[@]} -eq 0 ] || quietly 'Configuring build/ anew' meson setup --reconfigure build "${changed[@]}"
    fi
    quietly 'Building' ninja -C build
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
