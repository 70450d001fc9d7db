#!/bin/bash
# clang.sh: everything builds with clang as well, with warnings as errors. Prints TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

verdict=ok
{
    CC=clang CXX=clang++ meson setup "$build" -Dwerror=true -Dengine_tests=true &&
        ninja -k0 -C "$build"
} > "$build.log" 2>&1 || verdict='not ok'
echo "$verdict 1 - clang builds it without a warning"
[ "$verdict" = ok ] || grep -E 'error|warning:' "$build.log" | sort -u | sed 's/^/# /'
rm -f "$build.log"
echo 1..1
