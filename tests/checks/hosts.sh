#!/bin/bash
# hosts.sh: runs the hosts in other languages and the programs that docs/embedding.md shows, and
# prints TAP. DOCKER_HOST names the engine, PROVIDER another provider than the one in build/.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/packages.sh
. tests/packages.sh

provider=$(realpath "${PROVIDER:-build/plugin/docker/docker.so}")
modules=$PWD/build/hosts/node
export PYTHONDONTWRITEBYTECODE=1 NODE_PATH=$modules/node_modules
count=0

need_packages python3
command -v npm > /dev/null || need_packages nodejs npm
command -v node > /dev/null || die 'node is missing: install nodejs'
if ! cmp -s tests/hosts/node/package.json "$modules/package.json"; then
    mkdir -p "$modules"
    cp tests/hosts/node/package.json "$modules/wanted.json"
    (cd "$modules" && cp wanted.json package.json && rm -f package-lock.json &&
        quietly 'Installing koffi' npm install --ignore-scripts --no-audit --no-fund) || {
        rm -f "$modules/package.json"
        die 'koffi could not be installed'
    }
fi

renumber() { # COMMAND...: its cases, numbered on; its end without a plan is a case that failed
    local line planned=
    while IFS= read -r line; do
        case $line in
        'ok '* | 'not ok '*)
            count=$((count + 1))
            [[ $line =~ ^((not )?ok)\ [0-9]+(.*)$ ]]
            echo "${BASH_REMATCH[1]} $count${BASH_REMATCH[3]}"
            ;;
        1..*) planned=1 ;;
        *) echo "# ${line#\# }" ;;
        esac
    done < <(timeout 300 "$@" 2>&1)
    [ -n "$planned" ] || echo "not ok $((count += 1)) - $* ends"
}

shown() { # LANGUAGE COMMAND...: the program in docs/embedding.md, given the provider, prints hello
    local language=$1 said
    shift
    said=$(awk -v fence="\`\`\`$language" '$0 == "```" { on = 0 } on; $0 == fence { on = 1 }' docs/embedding.md |
        timeout 120 "$@" "$provider" 2>&1)
    count=$((count + 1))
    if [ "$said" = hello ]; then
        echo "ok $count - docs/embedding.md in $language"
    else
        printf 'not ok %s - docs/embedding.md in %s\n# %s\n' "$count" "$language" "${said//$'\n'/$'\n'# }"
    fi
}

renumber python3 tests/hosts/python/host.py "$provider"
renumber node tests/hosts/node/host.js "$provider"
shown python python3 -
shown js node -
echo "1..$count"
