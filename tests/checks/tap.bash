# Sourced by scripts of tests/checks that print TAP.
# shellcheck shell=bash
count=0

check() { # NAME CONDITION...
    local name=$1 verdict=ok
    shift
    count=$((count + 1))
    "$@" || verdict='not ok'
    echo "$verdict $count - $name"
}
