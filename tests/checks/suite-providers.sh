#!/bin/bash
# suite-providers.sh: runs the conformance suite on the mock and on each broken provider and
# compares what fails with tests/providers/expect.tsv. Prints TAP; needs no engine.
set -u
cd "$(dirname "$0")/../.." || exit 1

host=$PWD/build/host-sim/host-sim
providers=$PWD/build/tests/providers
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work

run() { # PROVIDER OPTIONS: leaves out, err and status in $work/PROVIDER
    local dir=$work/$1 options=()
    mkdir -p "$dir/engine"
    [ "$2" = - ] || read -ra options <<< "$2"
    "$host" check "$providers/$1.so" --level 1 --jobs 8 \
        --config "{\"host\":\"unix://$dir/engine\"}" "${options[@]}" > "$dir/out" 2> "$dir/err"
    echo $? > "$dir/status"
}

failed() { # PROVIDER [VERDICT]: ids that failed, with this verdict
    awk -v want="${2:-}" '
        /^not ok / { id = $5 }
        /^  verdict: / && id != "" { if (want == "" || $2 == want) print id; id = "" }
    ' "$work/$1/out" | sort
}

words() { # TEXT: its words, one a line and sorted; none for "-"
    [ "$1" = - ] || tr ' ' '\n' <<< "$1" | sort
}

judge() { # PROVIDER VERDICT MUST MAY: prints what is wrong
    local out=$work/$1/out status
    status=$(< "$work/$1/status")
    failed "$1" > "$work/failed"
    failed "$1" "$2" > "$work/as-told"
    words "$3" > "$work/must"
    { words "$3" && words "$4"; } | sort -u > "$work/allowed"
    comm -23 "$work/must" "$work/as-told" | sed "s/^/no $2: /"
    comm -23 "$work/failed" "$work/allowed" | sed 's/^/failed but may not: /'
    tail -n 1 "$out" | grep -qxE '[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped' ||
        echo "the last line does not count: $(tail -n 1 "$out")"
    tail -n 1 "$out" | grep -q " $(wc -l < "$work/failed") failed" ||
        echo "the last line counts other failures: $(tail -n 1 "$out")"
    [ "$(grep -cE '^(not )?ok ' "$out")" = "$(sed -n 's/^1\.\.//p' "$out")" ] ||
        echo "not every case is reported"
    [ "$status" = "$([ -s "$work/failed" ] && echo 1 || echo 0)" ] || echo "exit code $status"
    [ ! -s "$work/$1/err" ] || sed 's/^/stderr: /' "$work/$1/err"
}

expected() {
    grep -v '^#' tests/providers/expect.tsv
}

# Most of a run is waiting, so a few go side by side.
while IFS=$'\t' read -r provider options _; do
    run "$provider" "$options" &
    while [ "$(jobs -pr | wc -l)" -ge 4 ]; do
        wait -n
    done
done < <(expected)
wait

echo "1..$(expected | wc -l)"
count=0
while IFS=$'\t' read -r provider _ verdict must may; do
    count=$((count + 1))
    wrong=$(judge "$provider" "$verdict" "$must" "$may")
    if [ -z "$wrong" ]; then
        echo "ok $count - the suite finds in $provider: ${must/#-/nothing}"
    else
        echo "not ok $count - the suite finds in $provider: ${must/#-/nothing}"
        sed 's/^/# /' <<< "$wrong"
        grep -E -A 4 '^not ok' "$work/$provider/out" | head -n 60 | sed 's/^/#   /'
    fi
done < <(expected)
