#!/bin/bash
# fuzz.sh: what `host-sim fuzz` says of a command line or a provider that it cannot use; prints TAP.
# Needs no engine. What it finds is for tests/long/fuzz-providers.sh.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/checks/tap.bash
. tests/checks/tap.bash

host=$PWD/build/host-sim/host-sim
providers=$PWD/build/tests/providers
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work
mkdir "$work/engine"
open=(--config "{\"host\":\"unix://$work/engine\"}" --folder "$work")

gives() { # STATUS PATTERN PROVIDER ARGUMENT...: all that is printed is like that
    local wanted=$1 pattern=$2 provider=$3 status=0
    shift 3
    "$host" fuzz --provider "$providers/$provider.so" "${open[@]}" "$@" > "$work/out" 2>&1 || status=$?
    # shellcheck disable=SC2053
    [ $status -eq "$wanted" ] && [[ $(cat "$work/out") == $pattern ]] && return
    sed "s/^/# $status: /" "$work/out"
    return 1
}

check 'so many scripts run' gives 0 '*1 scripts of*seeds 0 to 0: nothing found' mock --scripts 1 --seed 0
for option in --scripts --times --time; do
    check "$option 0 is refused" gives 2 "*$option*: give 1 or more*" mock $option 0 --shrink 0
done
check 'a seed below 0 is refused' gives 2 'host-sim fuzz: --seed -1: give 0 or more*' mock --seed -1 --scripts 1
check 'a folder that is not there is told before a script runs' \
    gives 2 "host-sim fuzz: --folder $work/none cannot be written: No such file*" mock --folder "$work/none" --scripts 1
check 'and so is a file' gives 2 "host-sim fuzz: --folder $work/out cannot be written: Not a dir*" mock --folder "$work/out" --scripts 1

in_a_line() { # PATTERN PROVIDER ARGUMENT...: that alone is told
    gives 3 "$@" && [ "$(wc -l < "$work/out")" -eq 1 ]
}
check 'a provider that cannot be used is told in a line' in_a_line '*bad-hollow*' bad-hollow
check 'and so are options' in_a_line '*imagine*' mock --options '{"imagine":1}'
check 'and a configuration' in_a_line '*hots*' mock --config '{"hots":"x"}'
check 'nothing is left' [ "$(cd "$work" && echo *)" = 'engine out' ]
echo "1..$count"
