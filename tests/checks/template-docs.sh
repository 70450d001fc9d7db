#!/bin/bash
# What docs/templates.md shows is true: each definition in it is described, the repository too, and the
# program in C makes the definition that the page would.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
host=(build/host-sim/host-sim template describe --provider build/plugin/docker/docker.so)
count=0

check() { # NAME CONDITION...
    local name=$1 verdict=ok
    shift
    count=$((count + 1))
    "$@" > "$work/out" 2>&1 || verdict='not ok'
    echo "$verdict $count - $name"
    [ "$verdict" = ok ] || sed 's/^/# /' "$work/out"
}

awk -v work="$work" '
    /^```json$/ { inside = 1; file = work "/block" ++n ".json"; next }
    /^```$/ { inside = 0 }
    inside { print > file }' docs/templates.md
for block in "$work"/block*.json; do
    if grep -q '"repository"' "$block"; then
        check 'the repository on the page is described' \
            "${host[@]}" --sha 0123456789abcdef0123456789abcdef01234567 "$block"
    elif grep -q '"operations"' "$block"; then
        check "the definition on the page is described ($(head -c 60 "$block" | tr -d '\n'))" "${host[@]}" "$block"
    fi
done
check 'the page has definitions to describe' [ "$count" -ge 3 ]

cat > "$work/wanted.json" << 'END'
{"operations":[{"method":"aptInstall","args":[["git","ca-certificates"],{"noInstallRecommends":true}]},
{"method":"setEnvs","args":[{"NODE_ENV":"production"}]},{"method":"npmInstall","args":[["typescript","tsx"],{"g":true}]},
{"method":"setWorkdir","args":["/workspace"]},{"method":"runCmd","args":[["git init .","git config user.name sandbox"]]}]}
END
same_id() {
    id=$(build/docs/examples/example-template build/plugin/docker/docker.so | tail -n 1) &&
        "${host[@]}" "$work/wanted.json" | grep -F "\"templateId\":\"$id\""
}
check 'the program in C comes to the same id as JSON' same_id
echo "1..$count"
