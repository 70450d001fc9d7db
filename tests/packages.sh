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

# need_packages PACKAGE...: Debian packages. No service starts on their account, and nothing that
# is installed is removed for them.
need_packages() {
    local missing=() package
    for package in "$@"; do
        case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null) in
        installed) ;;
        *) missing+=("$package") ;;
        esac
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get > /dev/null || die "needs the Debian packages ${missing[*]}"
    say "Installing ${missing[*]}"
    as_root apt-get update -qq >&2 || die "apt-get update failed"
    as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -qq -y \
        --no-install-recommends --no-remove "${missing[@]}" >&2 ||
        die "apt-get could not install ${missing[*]}"
}
