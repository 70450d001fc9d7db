#!/bin/bash
# harmless.sh: the conformance suite on a provider that keeps nothing apart and takes every option (the
# minimal one of docs/examples), as root of a machine of its own: what it leaves there outside of /tmp has
# a random name of a case, and all that was there before is as it was. Prints TAP; needs bubblewrap.
set -u
cd "$(dirname "$0")/../.." || exit 1

echo 1..1
name='a provider that keeps nothing apart does no harm to its machine'
if ! command -v bwrap > /dev/null; then
    echo "ok 1 - $name # SKIP no bubblewrap (apt-get install bubblewrap)"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

machine=$work/machine
mkdir -p "$machine"/{etc,root,home/somebody,srv,var/lib,opt,data,given,looked,scratch,small,all,work,mine}
for folder in bin lib lib64 sbin; do
    ln -s "usr/$folder" "$machine/$folder"
done
cp /etc/passwd /etc/group /etc/ld.so.cache "$machine/etc"
for folder in root home/somebody srv var/lib opt data given looked scratch small all work mine; do
    echo "of $folder" > "$machine/$folder/kept"
done

on_it() { # COMMAND...
    bwrap --bind "$machine" / --ro-bind /usr /usr --ro-bind "$PWD" "$PWD" --tmpfs /tmp --proc /proc --dev /dev \
        --unshare-user --uid 0 --gid 0 --unshare-pid --unshare-net --unshare-ipc --die-with-parent "$@"
}

state() { # what there is, but for mount points that bwrap makes and what has a case's random word in its name
    (cd "$machine" && find . -type f -exec sha256sum {} + && find . ! -type f -printf '%p %y %m\n') |
        grep -vE '[ /](\./)?([a-z]+-)?t[0-9a-f]{12}' | sort
}

on_it true
state > "$work/before"
on_it build/host-sim/host-sim check build/docs/examples/minimal.so --level 3 --jobs 4 --time-scale 0.2 > "$work/out" 2>&1
state > "$work/after"
if [ "$(tail -n 1 "$work/out" | grep -cE '^[0-9]+ passed, [0-9]+ failed')" = 1 ] && cmp -s "$work/before" "$work/after"; then
    echo "ok 1 - $name"
else
    echo "not ok 1 - $name"
    { diff "$work/before" "$work/after"; tail -n 3 "$work/out"; } | head -n 40 | sed 's/^/# /'
fi
