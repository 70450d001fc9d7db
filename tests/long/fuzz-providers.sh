#!/bin/bash
# fuzz.sh: `host-sim fuzz` on the mock, which it must not blame, and on broken providers, each of
# which it has to find within a number of scripts and to show in a few calls. Engines are for
# tests/long/fuzz.sh. Prints TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1

host=$PWD/build/host-sim/host-sim
providers=$PWD/build/tests/providers
work=$(mktemp -d)
# What a provider that crashes has begun goes on without it, and is told by the folder it is named after.
clean_up() {
    local line
    for line in /proc/[0-9]*/cmdline; do
        grep -qsF "$work/" "$line" && kill -KILL "$(basename "$(dirname "$line")")"
    done
    rm -rf "$work"
}
trap clean_up EXIT
export TMPDIR=$work
count=0

fuzz() { # NAME PROVIDER OPTION...: leaves out, err and status in $work/NAME
    local dir=$work/$1 provider=$2
    shift 2
    mkdir -p "$dir/engine"
    "$host" fuzz --provider "$provider" --folder "$dir" "$@" > "$dir/out" 2> "$dir/err"
    echo $? > "$dir/status"
}

on_mock() { # NAME OPTION...: fuzz(), on the mock of this name and with an engine of its own
    local name=$1
    shift
    fuzz "$name" "$providers/${name%%:*}.so" --config "{\"host\":\"unix://$work/$name/engine\"}" "$@"
}

check() { # NAME DIR CONDITION...
    local name=$1 dir=$work/$2
    shift 2
    count=$((count + 1))
    if "$@" "$dir"; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        { echo "exit status $(< "$dir/status")"; tail -n 40 "$dir/out" "$dir/err"; } | sed 's/^/# /'
    fi
}

gave() { # STATUS PATTERN DIR: exit status, and output or error like that
    # shellcheck disable=SC2053
    [ "$(< "$3/status")" = "$1" ] && [[ $(cat "$3/out" "$3/err") == $2 ]]
}

# found VERDICT MOST DIR: so found, and no more than MOST calls are left
found() {
    gave 1 "*seed *: $1: *" "$3" && [ "$(grep -cE '^[0-3] [a-z]' "$3"/fuzz-*.script)" -le "$2" ]
}

# A broken provider, the verdict, the most scripts until it is found, and the most calls left. What
# only a race shows is left with as many calls as there was time for.
broken() {
    cat << 'TABLE'
bad-merged fail 1 4
bad-untruncated fail 6 8
bad-leaves fail 3 8
bad-sticky fail 4 8
bad-creates fail 40 8
bad-empty fail 3 4
bad-homebody fail 20 4
bad-undone fail 1 4
bad-caches fail 12 10
bad-torn fail 12 80
bad-crash crash 2 8
bad-exits crash 4 8
bad-hang timeout 2 4
TABLE
}

# Most of a run is waiting, so a few go side by side.
while read -r provider verdict scripts _; do
    limit=60 shrink=200
    [ "$verdict" != timeout ] || limit=2
    case $provider in bad-torn | bad-hang) shrink=15 ;; esac
    on_mock "$provider" --seed 1 --scripts "$scripts" --time 300 --limit $limit --shrink $shrink &
    while [ "$(jobs -pr | wc -l)" -ge 3 ]; do
        wait -n
    done
done < <(broken)
on_mock mock --seed 1 --scripts 40 --time 300
wait

check 'nothing is found in the good mock' mock gave 0 '*40 scripts of *: nothing found*'
while read -r provider verdict scripts most; do
    check "$provider is found within $scripts scripts, and $most calls show it" "$provider" \
        found "$verdict" "$most"
done < <(broken)

# ---- replays

for provider in bad-merged bad-leaves bad-caches bad-crash; do
    script=$(echo "$work/$provider"/fuzz-*.script)
    on_mock "$provider:again" --replay "$script" --times 2
    check "the script of $provider fails again" "$provider:again" gave 1 '*2 of 2 runs failed*'
    on_mock mock:again --replay "$script"
    check 'and passes on the good mock' mock:again gave 0 '*pass*0 of 1 runs failed*'
done

on_mock bad-sticky:twice --seed 1 --scripts 4 --time 300 --shrink 1
check 'the same seed finds the same' bad-sticky:twice gave 1 "*$(grep -o '^seed [0-9]*: fail' "$work/bad-sticky/out")*"

printf '# sprov-fuzz/1\nround\n0 start h0\n0 fly h0\n' > "$work/wrong.script"
on_mock mock:wrong --replay "$work/wrong.script"
check 'a script with a call that there is not is told by its line' mock:wrong gave 3 '*wrong.script: line 4: *"fly"*'
printf '# sprov-fuzz/1\nwith archive\nround\n0 repack h0 0/d\n' > "$work/pack.script"
on_mock mock:lacks --replay "$work/pack.script"
check 'a script that needs what the provider has not got is refused' mock:lacks gave 3 '*pack.script needs archive*'
on_mock mock:threads --threads 9
check 'too many threads are refused' mock:threads gave 2 '*--threads 9*'
on_mock bad-hollow
check 'a provider that cannot be used is told so' bad-hollow gave 3 '*sprov.lifecycle/1 has no list()*'

# What a call on files may answer when its sandbox is destroyed beside it.
{
    printf '# sprov-fuzz/1\nwith lifecycle files\n'
    for _ in {1..12}; do
        printf '%s\n' round '0 start h0' round '0 destroy h1' '1 write h0 1/d/a content=180 mode=0' \
            '1 write h0 1/e/a content=180 mode=0' '2 read h0 2/a number=0' '2 stat h0 2/a' \
            '2 mkdir h0 2/d mode=0' round '0 renew h1'
    done
} > "$work/beside.script"
on_mock mock:beside --replay "$work/beside.script" --times 40
check 'files beside the end of their sandbox are told gone, not missing' mock:beside gave 0 '*0 of 40 runs failed*'

echo "1..$count"
