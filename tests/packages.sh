# Sourced by the scripts that need programs of the machine: installs what is missing, as root or
# through sudo, and says nothing when nothing is missing.
# shellcheck shell=bash

say() {
    printf '%s\n' "$*" >&2
}

die() {
    say "$(basename "$0"): $*"
    exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo > /dev/null; then
        sudo "$@"
    else
        die "root is needed for: $*. Run this as root, or install sudo"
    fi
}

# quietly WHAT COMMAND...: shows the command's output only when it fails.
quietly() {
    local what=$1 output
    shift
    say "$what"
    output=$("$@" 2>&1) || {
        printf '%s\n' "$output" >&2
        die "$what: failed"
    }
}

# need_packages PACKAGE...: Debian packages. No service starts on their account, and nothing that
# is installed is removed for them.
need_packages() {
    local missing=() package
    command -v dpkg-query > /dev/null || return 0 # not Debian: the build says what it misses
    for package in "$@"; do
        case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null) in
        installed) ;;
        *) missing+=("$package") ;;
        esac
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    quietly 'Refreshing the list of Debian packages' as_root apt-get update -q
    quietly "Installing ${missing[*]}" as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get install -q -y --no-install-recommends --no-remove "${missing[@]}"
}
