#!/bin/bash
# copy.sh: host-sim cp both ways, by the rules that docker cp has; prints TAP. Needs the engine of
# DOCKER_HOST, with debian:bookworm-slim.
# shellcheck disable=SC2016 # commands are expanded where they run
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/checks/tap.bash
. tests/checks/tap.bash

if [ -z "${DOCKER_HOST:-}" ]; then
    echo '1..0 # SKIP DOCKER_HOST is not set'
    exit 0
fi
host=$PWD/build/host-sim/host-sim
open=(--provider "$PWD/build/plugin/docker/docker.so")
work=$(mktemp -d)
id=copy-$$-$(date +%s)

cleanup() {
    "$host" rm "${open[@]}" "$id" "odd/1:$id" 2> "$work/err" || cat "$work/err" >&2
    rm -rf "$work"
}
trap cleanup EXIT

cp_() { # FROM TO: in the folder here/
    (cd "$work/here" && "$host" cp "${open[@]}" "$@" > "$work/out" 2> "$work/err") || {
        sed 's/^/# /' "$work/err"
        return 1
    }
}

fails() { # STATUS TEXT FROM TO
    local wanted=$1 text=$2 status=0
    shift 2
    (cd "$work/here" && "$host" cp "${open[@]}" "$@" > "$work/out" 2> "$work/err") || status=$?
    if [ "$status" -ne "$wanted" ] || ! grep -qF -- "$text" "$work/err"; then
        sed "s/^/# $status: /" "$work/err"
        return 1
    fi
}

inside() { # COMMAND: in /there
    "$host" exec "${open[@]}" --id "$id" --cwd /there -c "$1"
}

# What is below a directory: types, modes, names, targets of links, and what is in the files.
listing='cd "$1" && find . -mindepth 1 \( -type l -printf "%y %P -> %l\n" \) -o \( -printf "%y %m %P\n" \) | LC_ALL=C sort
find . -type f -exec sha256sum {} + | LC_ALL=C sort'
has_inside() { # DIRECTORY LOCAL-DIRECTORY: the same is below both
    inside "set -- '$1'; $listing" > "$work/a" && bash -c "$listing" - "$work/here/$2" > "$work/b" && diff "$work/a" "$work/b" | sed 's/^/# /'
    cmp -s "$work/a" "$work/b"
}

says() { # TEXT COMMAND...
    local text=$1 got
    shift
    got=$("$@")
    [ "$got" = "$text" ] || { echo "# $got"; false; }
}

mkdir -p "$work/here"
"$host" start "${open[@]}" --id "$id" -o '{"image":"debian:bookworm-slim"}' > "$work/out" 2>&1
"$host" start "${open[@]}" --id "odd/1:$id" -o '{"image":"debian:bookworm-slim"}' > "$work/out" 2>&1
"$host" exec "${open[@]}" --id "$id" -c 'mkdir -p /there/dir && echo old > /there/file && ln -s dir /there/link'
cd "$work/here" || exit 1
mkdir -p tree/deep/er tree/empty dir
echo one > file
printf 'a\0b' > tree/bytes
head -c 3000000 /dev/urandom > tree/deep/big
echo run > tree/deep/er/tool && chmod 750 tree/deep/er/tool
ln -s bytes tree/link && ln -s nowhere tree/dangling && ln tree/bytes tree/twin
: > "tree/a b
c" && : > "tree/$(printf '\351\377')" && : > tree/é
mkdir -m 711 tree/closed
touch -d 2001-02-03T04:05:06Z tree/bytes file
cd - > "$work/out" || exit 1

# ------------------------------------------------------------------------------- a file in

check 'a file gets the new name' cp_ file "$id:/there/new"
check 'with its bytes, mode and place' says 'one 644' inside 'echo $(cat new) $(stat -c %a new)'
check 'in a directory it keeps its own' cp_ file "$id:/there/dir"
check 'so it does' says one inside 'cat dir/file'
check 'also behind a slash' cp_ tree/deep/er/tool "$id:/there/dir/"
check 'with its mode' says 750 inside 'stat -c %a dir/tool'
check 'and through a link' cp_ file "$id:/there/link"
check 'a file that is there is replaced' cp_ tree/bytes "$id:/there/file"
check 'wholly' says 3 inside 'stat -c %s file'
check 'relative paths begin in the working directory' cp_ file "$id:relative"
check 'there it is' says one inside 'cat /workspace/relative'
check 'no directory is made for it' fails 125 'there is no directory /there/no' file "$id:/there/no/file"
check 'nor for a name with a slash' fails 125 'there is no directory /there/no/' file "$id:/there/no/"
check 'a file is no directory' fails 125 '/there/file/ is no directory' file "$id:/there/file/"
inside 'mkdir -p trap/file'
check 'a directory is not replaced by a file' fails 125 '/there/trap/file is there and is a directory' file "$id:/there/trap"
check 'what is not there is named' fails 125 'there is no nothing' nothing "$id:/there"
check 'a slash behind a file is refused' fails 125 'file/ is no directory' file/ "$id:/there"

# -------------------------------------------------------------------------- a directory in

check 'a directory gets the new name' cp_ tree "$id:/there/copy"
check 'with all that is in it' has_inside copy tree
check 'and files with two names' inside '[ copy/bytes -ef copy/twin ]'
check 'in a directory it keeps its own' cp_ tree "$id:/there/dir"
check 'so does it' has_inside dir/tree tree
inside 'mkdir merged && echo kept > merged/kept && echo old > merged/bytes'
check '/. means what is in it' cp_ tree/. "$id:/there/merged"
check 'which joins what is there' says 'kept 3' inside 'echo $(cat merged/kept) $(stat -c %s merged/bytes)'
inside 'rm merged/kept'
check 'and replaces what has its names' has_inside merged tree
check 'a slash at its end means nothing' cp_ tree/ "$id:/there/dir/"
check 'a directory is not copied onto a file' fails 125 "a directory can't be copied onto the file /there/file" tree "$id:/there/file"
inside 'mkdir other && echo x > other/tree'
check 'nor over one of its name' fails 125 '/there/other/tree is there and is no directory' tree "$id:/there/other"
check 'nor below a directory that is not there' fails 125 'there is no directory /there/no' tree "$id:/there/no/tree"
mkdir "$work/here/bad" && ln -s /etc/passwd "$work/here/bad/out"
check 'a link that leads out of it is refused and named' fails 125 'out' bad "$id:/there"
mkdir "$work/here/special" && mkfifo "$work/here/special/pipe" && echo x > "$work/here/special/x"
check 'a pipe is left out' cp_ special "$id:/there"
check 'and told' grep -q 'pipe is no file, directory or link: it is left out' "$work/err"

# --------------------------------------------------------------------------------- a file out

check 'a file comes out under a new name' cp_ "$id:/there/dir/tool" new
check 'with its bytes and mode' says 'run 750' echo "$(cat "$work/here/new") $(stat -c %a "$work/here/new")"
check 'into a directory under its own' cp_ "$id:/there/dir/tool" dir
check 'there it is' test -x "$work/here/dir/tool"
check 'to the folder it runs in' cp_ "$id:/there/dir/tool" .
check 'as well' test -x "$work/here/tool"
check 'over a file' cp_ "$id:/there/new" new
check 'wholly' says one cat "$work/here/new"
check 'one of the kernel' cp_ "$id:/proc/version" version
check 'of unknown size' grep -q '^Linux' "$work/here/version"
check 'no directory is made for it here' fails 125 'there is no directory no' "$id:/there/file" no/file
check 'nor for a slash' fails 125 'there is no directory no/' "$id:/there/file" no/
check 'what is not there is named' fails 125 'there is no /there/nothing in the sandbox' "$id:/there/nothing" .
check 'what is neither is refused' fails 125 '/dev/null in the sandbox is no file and no directory' "$id:/dev/null" .
nothing_left() { [ -z "$(find "$work/here" -maxdepth 1 -name '*.??????' -print)" ]; }
check 'and nothing is left of it' nothing_left

# --------------------------------------------------------------------------- a directory out

check 'a directory comes out under a new name' cp_ "$id:/there/copy" back
check 'with all that is in it' has_inside copy back
check 'hard links too' [ "$work/here/back/bytes" -ef "$work/here/back/twin" ]
check 'and times' says 2001-02-03 date -u -r "$work/here/back/bytes" +%F
check 'into a directory under its own' cp_ "$id:/there/copy" dir
check 'as it is' has_inside copy dir/copy
mkdir "$work/here/into" && echo kept > "$work/here/into/kept"
check '/. means what is in it' cp_ "$id:/there/copy/." into
check 'which joins what is there' says kept cat "$work/here/into/kept"
rm "$work/here/into/kept"
check 'and is whole' has_inside copy into
check 'a link that is named is followed' cp_ "$id:/there/link/." linked
check 'to what it leads to' test -f "$work/here/linked/file"
check 'a directory is not copied onto a file here' fails 125 "a directory can't be copied onto the file file" "$id:/there/copy" file

# What a hostile sandbox has.
inside 'mkdir -p evil/sub && ln -s /tmp evil/abs && ln -s ../../.. evil/up && cp /bin/true evil/suid && chmod 6755 evil/suid && mknod evil/dev c 1 3 && mkfifo evil/fifo'
check 'its links are copied as links, devices and pipes left out' cp_ "$id:/there/evil" evil
check 'each told' says 2 grep -c 'it is left out' "$work/err"
check 'setuid is not taken over' says 755 stat -c %a "$work/here/evil/suid"
inside 'rm -r evil && mkdir -p evil/abs evil/up && echo x > evil/abs/planted && echo x > evil/up/planted'
check 'a link that came is not written through' fails 125 'is a directory in the sandbox and none here' "$id:/there/evil/." evil
check 'nothing is outside' test ! -e /tmp/planted
check 'nor one by the name of the directory' fails 125 'evil/abs is a directory in the sandbox and a link here' "$id:/there/evil/abs" evil
check 'nor with slashes' fails 125 'evil/abs is a directory in the sandbox and a link here' "$id:/there/evil/abs/" evil/
check 'nothing is there' test ! -e /tmp/planted
mkdir "$work/here/meant" && ln -s meant "$work/here/mine"
check 'a link that is named as the target is meant' cp_ "$id:/there/evil/abs/." mine
check 'so it is there' test -e "$work/here/meant/planted"

# ---------------------------------------------------------------------------------- streams

stream_out() { (cd "$work/here" && "$host" cp "${open[@]}" "$id:/there/copy" - | tar x -C "$work" 2> "$work/err" && diff -r --no-dereference "$work/copy" back); }
check '- is a tar of it' stream_out
stream_in() { tar c -C "$work/here" tree | (cd "$work/here" && "$host" cp "${open[@]}" - "$id:/there/streamed"); }
inside 'mkdir streamed'
check 'and one that is unpacked' stream_in
check 'in the directory' has_inside streamed/tree tree
check 'which has to be there' fails 125 'an archive is unpacked in a directory, and /there/none is none' - "$id:/there/none"
reader_gone() {
    (cd "$work/here" && "$host" cp "${open[@]}" "$id:/there/copy" - 2> "$work/err" | head -c 1 > "$work/out"; [ "${PIPESTATUS[0]}" -eq 141 ])
}
check 'a reader that goes is no failure to talk about' reader_gone

# ----------------------------------------------------------------------------------- places

check 'an id with colons and slashes is understood' cp_ file "odd/1:$id:/tmp/there"
check 'or given by itself' cp_ --id "odd/1:$id" :/tmp/there here
check 'both are the same' cmp "$work/here/file" "$work/here/here"
: > "$work/here/odd:name"
check 'a name here with a colon begins with ./' cp_ ./odd:name "$id:/there/dir"
check 'two places here are one too many' fails 2 'one of the two has to be ID:PATH' file dir
check 'and two there' fails 2 'one of the two has to be here' "$id:/a" "$id:/b"
check 'one path is too few' fails 2 'give two paths' "$id:/there/file"
check 'no sandbox is created' fails 125 "there is no sandbox with the id \"$id-none\"" file "$id-none:/tmp"
chmod 000 "$work/here/tree/deep/big"
if [ "$(id -u)" != 0 ]; then
    check 'what can not be read here is named' fails 125 'deep/big: Permission denied' tree "$id:/there/unread"
fi
chmod 644 "$work/here/tree/deep/big"
"$host" stop "${open[@]}" "$id"
check 'one that is stopped is started again' cp_ "$id:/there/file" again
echo "1..$count"
