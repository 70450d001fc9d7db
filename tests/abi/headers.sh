#!/bin/sh
# Compiles each file alone as every version of C and C++ that the contract promises, with every
# compiler that is there; speaks TAP.
#
#   headers.sh INCLUDE_DIR FILE...
include=$1
shift
count=0
failed=0

# compile COMPILER LANGUAGE STANDARD FILE
compile() {
    count=$((count + 1))
    if output=$("$1" -std="$3" -I "$include" -Wall -Wextra -Wpedantic -Wpadded -Werror \
        -fsyntax-only -x "$2" "$4" 2>&1); then
        echo "ok $count - ${4##*/} compiles alone as $3 with $1"
    else
        failed=1
        echo "not ok $count - ${4##*/} compiles alone as $3 with $1"
        echo "$output" | sed 's/^/# /'
    fi
}

# compile_all LANGUAGE "COMPILERS" "STANDARDS" FILE
compile_all() {
    found=
    for compiler in $2; do
        command -v "$compiler" >/dev/null || continue
        found=yes
        for standard in $3; do
            compile "$compiler" "$1" "$standard" "$4"
        done
    done
    if [ -z "$found" ]; then
        count=$((count + 1))
        echo "ok $count - ${4##*/} as $1 # SKIP none of these is installed: $2"
    fi
}

for file; do
    compile_all c "gcc clang" "c11 c17" "$file"
    compile_all c++ "g++ clang++" "c++11 c++17 c++20" "$file"
done
echo "1..$count"
exit $failed
