#!/bin/bash
# about.sh: what docker.so and local.so tell of themselves, and that all reports of the suite carry it;
# prints TAP. Needs the engine of DOCKER_HOST with debian:bookworm-slim, or bubblewrap, for its part each.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/engines/lib.sh
. tests/engines/lib.sh
# shellcheck source=tests/checks/tap.bash
. tests/checks/tap.bash

host=$PWD/build/host-sim/host-sim
work=$(mktemp -d)
export XDG_STATE_HOME=${XDG_STATE_HOME:-$work/state}
trap 'rm -rf "$work"' EXIT

fits_the_schema() { # PROVIDER.so: with what host-sim adds
    "$host" info "$1" --json > "$work/about" && python3 - abi/schema/about.json "$work/about" << 'END'
import json, sys
about = json.load(open(sys.argv[2]))
assert about['engine']['version'] and 'attention' not in about, about
try:
    from jsonschema import Draft7Validator
except ImportError:
    sys.exit(0)
Draft7Validator(json.load(open(sys.argv[1]))).validate(about)
END
}

tells_version() { # VERSION: of the engine, in what fits_the_schema read
    python3 -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["engine"]["version"] != sys.argv[2])' \
        "$work/about" "$1"
}

# In each report: the suite's version, the ABI's, the provider's and the engine's.
are_told() { # FILE ABI-PATTERN
    local pattern
    for pattern in 'host-sim [0-9]+\.' "$2" "(provider|providerVersion).*$version" "engine.*$engine"; do
        grep -qE "$pattern" "$1" || {
            echo "# $1 has no $pattern"
            return 1
        }
    done
}

reports() { # PROVIDER.so ENGINE: a run with every kind of report
    version=$("$host" info "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["version"])')
    engine=$(printf '%s' "$2" | sed 's/[+.]/\\&/g')
    "$host" check "$1" --include EXE-01 --include INF-07 --json "$work/json" --junit "$work/junit" \
        --html "$work/html" > "$work/tap" 2> "$work/err"
}

provider() { # NAME PROVIDER.so VERSION
    check "$1: what it tells follows the schema" fits_the_schema "$2"
    check "$1: and has the engine's own version" tells_version "$3"
    check "$1: the suite passes" reports "$2" "$3"
    check "$1: TAP tells the versions of all four" are_told "$work/tap" 'ABI 1\.0'
    check "$1: and so does JSON" are_told "$work/json" '"abi": "1\.0"'
    check "$1: and so does JUnit" are_told "$work/junit" 'name="abi" value="1\.0"'
    check "$1: and so does the page" are_told "$work/html" 'abi</td><td>1\.0'
}

if [ -n "${DOCKER_HOST:-}" ]; then
    provider docker "$PWD/build/plugin/docker/docker.so" "$(engine_api /version | python3 -c \
        'import json, sys; print(json.load(sys.stdin)["Version"])')"
fi
if "$host" run --provider "$PWD/build/plugin/local/local.so" -c true 2> "$work/err"; then
    provider local "$PWD/build/plugin/local/local.so" "$(bwrap --version | sed 's/.* //')"
fi
[ $count -gt 0 ] || {
    echo '1..0 # SKIP DOCKER_HOST is not set, and bubblewrap does not work'
    exit 0
}
echo "1..$count"
