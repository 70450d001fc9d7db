#!/bin/bash
# suite-runner.sh: the options and reports of `host-sim check`, with the mock and some broken
# providers. Prints TAP; needs no engine. The page is looked at in headless Chromium where there is one.
set -u
cd "$(dirname "$0")/../.." || exit 1

host=$PWD/build/host-sim/host-sim
providers=$PWD/build/tests/providers
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work
mkdir "$work/engine"
count=0

suite() { # PROVIDER OPTION...: runs the suite; leaves $work/out, $work/err and status
    local provider=$1
    shift
    "$host" check "$providers/$provider.so" --config "{\"host\":\"unix://$work/engine\"}" --jobs 8 "$@" \
        > "$work/out" 2> "$work/err"
    status=$?
}

check() { # NAME CONDITION...
    local name=$1
    shift
    count=$((count + 1))
    if "$@"; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        { echo "exit status $status"; cat "$work/err"; tail -n 60 "$work/out"; } | sed 's/^/# /'
    fi
}

skip() { # NAME REASON
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2"
}

last_is() { # TEXT
    [ "$(tail -n 1 "$work/out")" = "$1" ]
}

gave() { # STATUS PATTERN: exit status, and output or error like that
    # shellcheck disable=SC2053
    [ "$status" -eq "$1" ] && [[ $(cat "$work/out" "$work/err") == $2 ]]
}

verdicts() { # FILE: the verdict of each case of a JSON report, sorted by its id
    python3 -c 'import json, sys
print("\n".join(sorted(c["id"] + " " + c["verdict"] for c in json.load(open(sys.argv[1]))["cases"])))' "$1"
}

agree() { # FILE...: the same verdicts in all
    local first=$1 file
    for file in "$@"; do
        diff <(verdicts "$first") <(verdicts "$file") >> "$work/err" || return 1
    done
}

orders_differ() { # FILE FILE
    python3 -c 'import json, sys
a, b = ([c["id"] for c in json.load(open(f))["cases"]] for f in sys.argv[1:])
sys.exit(not (a != b and sorted(a) == sorted(b) and a[-1] == b[-1] == "LEK-01"))' "$@"
}

# ---- order and the outside of a run

for seed in 1 2 3; do
    suite mock --level 1 --exclude 'TMO-*' --shuffle $seed --json "$work/shuffled-$seed.json"
    check "all of level 1 passes in the order of $seed" test $status -eq 0
done
check 'three orders agree on every case' agree "$work"/shuffled-[123].json
check 'and are three orders, with the case of leaks at their end' \
    orders_differ "$work/shuffled-1.json" "$work/shuffled-2.json"

suite mock --level 2 --include 'LIF-*' --include 'REC-*' --include 'ENV-*' --include 'STD-*' --repeat-calls 3
check 'every idempotent call may be made three times' test $status -eq 0
suite bad-merged --include EXE-01 --include EXE-02 --include EXE-03 --in-process
check 'in one process, a failure is told and ends the run' \
    gave 1 '*ok 1 - EXE-01*not ok 2 - EXE-02*1 cases were not run*1 passed, 1 failed, 0 skipped'
suite mock --run-one EXE-02
check 'a case is run alone, in one process' gave 0 '*ok 1 - EXE-02*1 passed, 0 failed, 0 skipped'
suite mock --run-one XXX-01
check 'a case that there is not is refused' gave 2 '*XXX-01*--list*'

suite none
check 'a provider that is not there is told without an option that check has not got' \
    eval 'gave 2 "*no provider at $providers/none.so: No such file*its .so file*" && ! grep -q -- "--provider" "$work/err"'
suite bad-hollow
check 'a provider whose tables have holes is told so, and no case runs' \
    gave 1 '*Bail out!*bad-hollow*0 passed, 1 failed, 0 skipped'

# ---- the worst providers

ran_to_its_end() { # every case is reported, and the last line counts the failures
    local planned told
    planned=$(sed -n 's/^1\.\.//p' "$work/out")
    told=$(grep -cE '^(not )?ok ' "$work/out")
    [ "$status" -eq 1 ] && [ "$planned" -eq "$told" ] && [ "$told" -gt 5 ] &&
        tail -n 1 "$work/out" | grep -qE "^[0-9]+ passed, $(grep -c '^not ok ' "$work/out") failed, [0-9]+ skipped\$"
}
for sin in crash hang exits closes stops floods quits babbles scribbles wrecks; do
    suite bad-$sin --jobs 4 --shuffle 7 --level 1 --time-scale 0.1 --include 'RDF-0*' --include EXE-01 \
        --include WRF-04 --include 'ABI-0*' --include ABI-46 --include 'LEK-*' --include 'LIF-1*'
    check "the run goes on whatever bad-$sin does, four at a time and in any order" ran_to_its_end
done

# ---- the end of a run before its time

mkdir "$work/cut"
suite_cut_by() { # SIGNAL: the same for a run of bad-hang, in the middle of its second case
    local pid tries=0
    : > "$work/out"
    TMPDIR=$work/cut "$host" check "$providers/bad-hang.so" --jobs 1 --include EXE-01 --include RDF-01 --include RDF-02 \
        --json "$work/cut.json" --junit "$work/cut.xml" --html "$work/cut.html" > "$work/out" 2> "$work/err" &
    pid=$!
    until grep -q '^ok 1 ' "$work/out" || [ $((tries += 1)) -gt 600 ]; do sleep 0.05; done
    kill -s "$1" $pid
    wait $pid
    status=$?
}
blames_nobody() { # TEXT: the one verdict is that of the first case; TEXT ends the report
    [[ $(grep -v '^#' "$work/out" | tail -n 2) == "Bail out! $1"$'\n1 passed, 0 failed, 0 skipped' ]] &&
        ! grep -qE '^not ok|left|crash' "$work/out" && [ ! -s "$work/err" ] && [ "$(verdicts "$work/cut.json")" = 'EXE-01 pass' ] &&
        grep -q '"interrupted": "by signal' "$work/cut.json" && ! grep -qE '<(failure|error)' "$work/cut.xml" &&
        ! grep -q RDF- "$work/cut.html" && [ -z "$(find "$work/cut" -name 'host-sim-check-*')" ]
}
suite_cut_by TERM
check 'a case that SIGTERM cuts off is no failure of the provider' \
    eval 'test $status -eq 143 && blames_nobody "interrupted by signal 15 (SIGTERM)"'
suite_cut_by INT
check 'nor is one that SIGINT cuts off' eval 'test $status -eq 130 && blames_nobody "interrupted by signal 2 (SIGINT)"'

# ---- expectations

echo 'EXE-01 not written yet' > "$work/known"
suite bad-canned --include EXE-01 --include EXE-03 --known-failures "$work/known"
check 'a known failure does not fail the run' \
    gave 0 '*not ok 1 - EXE-01 *# TODO known failure: not written yet*1 passed, 0 failed, 1 skipped'
suite mock --include EXE-01 --known-failures "$work/known"
check 'a known failure that passes fails the run' gave 1 '*unexpected-pass*0 passed, 1 failed, 0 skipped'
echo '{"name": "wants", "gates": ["core", "archive"]}' > "$work/wants.json"
suite mock --include ARC-01 --include EXE-01 --profile "$work/wants.json"
check 'a skip of what the profile asks for fails' \
    gave 1 '*not ok 2 - ARC-01*the profile wants asks for it*1 passed, 1 failed, 0 skipped'
suite mock --level 1 --include 'A*' --include 'B*' --write-profile "$work/own.json"
check 'a profile is written' test -s "$work/own.json"
suite mock --level 1 --include 'A*' --include 'B*' --profile "$work/own.json"
check 'which the same provider satisfies' test $status -eq 0
suite mock --profile "$work/none.json"
check 'a profile that is not there is told by its path' gave 2 "*$work/none.json*"
suite mock --profile docker
check 'a name that no profile has is told with those that there are' gave 2 \
    'host-sim check: --profile docker: no such file or profile; the profiles are docker-1.41, docker-1.41-plain, *, local'
cd "$work" || exit 1
for profile in docker-1.41 docker-1.41-plain docker-1.45 docker-1.45-plain local; do
    suite mock --include EXE-01 --profile $profile --json "$work/named.json"
    check "the profile $profile is found by its name from anywhere" \
        eval 'test $status -eq 0 && grep -q "\"profile\": *\"$profile\"" "$work/named.json"'
done
for provider in docker local; do
    "$host" check $provider --include 'ABI-0[1-4]' > "$work/out" 2> "$work/err"
    status=$?
    check "the provider $provider is found by its name from anywhere" gave 0 '*4 passed, 0 failed*'
done
cd - > "$work/out" || exit 1
suite mock --hooks "$work/wants.json"
check 'a wrong file of hooks is told by its key' gave 2 '*"name": hooks are*'

suite mock --include LIF-20
check 'without hooks a case of the outside is skipped, and says what it needs' gave 3 '*# SKIP @stop needs --hooks FILE*'

suite mock --include 'EXE-0[12]' --include 'RDF-0?'
check 'ids are chosen by globs of the shell' gave 0 '*EXE-01*EXE-02*RDF-01*passed, 0 failed*'
suite mock --level 1 --include 'EXE-*' --include EXE-99
check 'one that selects nothing is an error that names it' gave 3 '*--include EXE-99: there is no such case*'
suite mock --level 1 --include 'EXE-*' --include ABI-44
check 'so is one that is of a higher level' gave 3 '*--include ABI-44 selects nothing: ABI-44 is of level 2, the run of level 1*'
suite mock --level 1 --exclude 'EXW-*'
check 'and one that leaves nothing out' gave 3 '*--exclude EXW-\*: there is no such case*'
for option in --json --junit --html --write-profile; do
    suite mock --include EXE-01 $option "$work/none/report"
    check "a file for $option that cannot be written is told before the run" \
        gave 2 "*the report $work/none/report cannot be written: No such file*"
done
suite mock --include EXE-01 --json "$work"
check 'so is a folder' gave 2 "*the report $work cannot be written: Is a directory*"
ln -s page "$work/link"
: > "$work/page"
suite mock --include EXE-01 --html "$work/link"
check 'what a link leads to is written, and the link stays' eval 'test $status -eq 0 && test -L "$work/link" && grep -q "<html" "$work/page"'
not_left() { # a run that ends with that, and speaks of nothing left behind
    gave 1 "$1" && ! grep -qi 'left' "$work/out" "$work/err"
}
suite mock --include 'EXE-*' --config '{"hots":"x"}'
check 'a wrong --config is told once, and nothing else' not_left '*Bail out! the provider refuses --config: *hots*0 passed, 1 failed*'
suite mock --include 'EXE-*' --options '{"imagine":1}'
check 'so are wrong --options' not_left '*Bail out! the provider refuses --options: *imagine*0 passed, 1 failed*'

for option in --seed --shuffle; do
    suite mock --include EXE-01 $option -1
    check "a $option below 0 is refused" gave 2 "*$option -1: give 0 or more*"
done

# ---- reports

suite bad-merged --level 1 --include 'EXE-*' --include 'ARC-0*' --json "$work/merged.json" \
    --junit "$work/merged.xml" --html "$work/merged.html"
check 'JUnit is XML that counts as the last line does' python3 - "$work/merged.xml" "$work/out" <<'PY'
import sys, xml.etree.ElementTree as xml
root = xml.parse(sys.argv[1]).getroot()
failed, skipped = int(root.get('failures')), int(root.get('skipped'))
told = open(sys.argv[2]).read().splitlines()[-1]
assert told == f'{int(root.get("tests")) - failed - skipped} passed, {failed} failed, {skipped} skipped', told
assert failed > 0 and len(root.findall('.//failure')) + len(root.findall('.//error')) == failed
PY
check 'and tells what ran in each of its suites' python3 - "$work/merged.xml" <<'PY'
import sys, xml.etree.ElementTree as xml
for suite in xml.parse(sys.argv[1]).getroot():
    told = {one.get('name'): one.get('value') for one in suite.findall('properties/property')}
    for key in 'suite', 'abi', 'provider', 'providerVersion', 'machine', 'seed', 'level', 'calibration', 'time':
        assert told[key], (suite.get('name'), key)
PY
check 'JSON has versions, seed and every case' python3 - "$work/merged.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
for key in 'suite', 'abi', 'provider', 'providerVersion', 'machine', 'seed', 'level', 'calibration', 'time':
    assert report['environment'][key], key
assert report['gates']['core'] is None and report['gates']['archive']
for case in report['cases']:
    assert case['verdict'] == 'skip' or case['assertions'] > 0, case
PY
"$host" check --compare --html "$work/both.html" "$work/merged.json" "$work/shuffled-1.json" > "$work/out" 2> "$work/err"
status=$?
check 'reports are put side by side on one page' grep -q 'where they differ' "$work/both.html"
"$host" check --compare --html "$work/none.html" "$work/wants.json" > "$work/out" 2> "$work/err"
status=$?
check 'what is no report is refused' gave 2 "*$work/wants.json is no report*"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -z "$browser" ]; then
    skip 'the page shows its verdicts in their colours, within the window' 'no chromium (apt-get install chromium)'
else
    HOME=$work timeout 120 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --disable-dev-shm-usage \
        --user-data-dir="$work/chromium" --window-size=700,900 --screenshot="$work/page.png" \
        "file://$work/both.html" > "$work/out" 2> "$work/err"
    status=$?
    check 'the page shows its verdicts in their colours, within the window' \
        python3 tests/checks/look.py "$work/page.png"
fi

echo "1..$count"
