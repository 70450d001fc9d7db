#!/bin/bash
# The host that the README shows is the file in docs/examples, it compiles, and it runs.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

say() {
    if [ "$1" -eq 0 ]; then echo "ok $2"; else echo "not ok $2"; fi
}

echo 1..3
shown=$(awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' README.md)
[ "$shown" = "$(cat docs/examples/host.c)" ]
say $? '1 - the README shows docs/examples/host.c as it is'

out=$(build/docs/examples/example-host build/plugin/docker/docker.so '{"image":"debian:bookworm-slim"}')
[ "$out" = hello ]
say $? '2 - the example host runs its command in a sandbox'

out=$(build/docs/examples/example-host build/plugin/docker/docker.so '{"imgae":"x"}' 2>&1)
[ $? -eq 125 ] && [[ $out == *'did you mean "image"'* ]]
say $? '3 - it tells the one line of an error'
