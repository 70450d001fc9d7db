#!/bin/bash
# checkouts.sh: what a template of a Git repository can check out beside a branch: submodules, files of
# Git LFS, commits of no branch, for a platform and for another user; and which requests carry the token.
# Prints TAP. Needs the engine of DOCKER_HOST on this machine, with debian:bookworm-slim, and Debian's
# mirror for git-lfs.
# shellcheck disable=SC2016 # commands are expanded where they run
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/checks/repositories.bash
. tests/checks/repositories.bash

TOKEN=tok-$$-$(date +%s%N)
export TOKEN
git() {
    command git -c init.defaultBranch=main -c user.name=T -c user.email=t@example.com -C "$work/tree" "$@" \
        > "$work/git.out" 2>&1 || cat "$work/git.out" >&2
}
commit() { # TEXT: sets sha
    echo "$1" > "$work/tree/file"
    git add file
    git commit -m "$1"
    sha=$(command git -C "$work/tree" rev-parse HEAD)
}
mkdir "$work/tree" "$work/served" "$work/served/private" "$work/served/lfs"
git init

# bare NAME...: NAME.git as the tree is now
bare() {
    local name
    for name in "$@"; do
        git clone --bare "$work/tree" "$work/served/$name.git"
    done
}

commit "$$ first"
commit main && main=$sha
bare deep app private/deep
git checkout --detach "$main"
commit lost && lost=$sha # in no branch and no tag
git push "$work/served/app.git" "$lost:refs/pull/9/head"
command git -C "$work/served/app.git" update-ref -d refs/pull/9/head

# outer NAME INNER INNER-SHA: a commit on main with INNER.git as a submodule; sets sha
outer() {
    git checkout --detach "$main"
    printf '[submodule "%s"]\n\tpath = %s\n\turl = ../%s.git\n' "$2" "$2" "$2" > "$work/tree/.gitmodules"
    git add .gitmodules
    git update-index --add --cacheinfo "160000,$3,$2"
    commit "$1 with $2"
    git branch -f main
    git checkout main
    bare "$1"
}
outer lib deep "$main" && lib=$sha
git checkout --detach "$lib"
commit 'newer than what is pinned'
git push "$work/served/lib.git" "HEAD:main"
outer whole lib "$lib" && whole=$sha
outer private/whole deep "$main"

git checkout --detach "$main"
printf 'a large file of %s\n' "$$" > "$work/large"
oid=$(sha256sum < "$work/large" | cut -d' ' -f1)
cp "$work/large" "$work/served/lfs/$oid"
printf '*.bin filter=lfs diff=lfs merge=lfs -text\n' > "$work/tree/.gitattributes"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' "$oid" "$(stat -c %s "$work/large")" \
    > "$work/tree/large.bin"
git add .gitattributes large.bin
commit large
git branch -f main
git checkout main
bare large private/large
ln -s large.git "$work/served/private/short"

mkfifo "$work/input" "$work/port"
tests/long/git-server.py "$work/served" < "$work/input" > "$work/port" 2> "$work/server.err" &
exec 9> "$work/input" # it ends with us
read -r port < "$work/port"
url=https://127.0.0.1:$port
export GIT_SSL_CAINFO=$work/served/ca.pem
trust="printf %b \"$(sed ':a;N;$!ba;s/\n/\\n/g' "$GIT_SSL_CAINFO")\" > /ca.pem && git config --system http.sslCAInfo /ca.pem"

# -------------------------------------------------------------------------------- without LFS

build_base "$trust"
without_lfs=$base
builds_to() { # WANTED COMMAND FILE ARGUMENT...: the image's directory is the checkout
    local wanted=$1 command=$2 said
    shift 2
    build "$@" || { sed 's/^/# /' "$work/last.err" | tail -n 8 && return 1; }
    said=$(in_image "$command")
    [ "$said" = "$wanted" ] || { printf '%s\n' "$said" | sed 's/^/# /' && return 1; }
}
modules='git submodule status --recursive | cut -c1-41'
repository whole.json whole.git '"submodules":true'
check 'submodules are checked out where they are pinned, and theirs' \
    builds_to " $lib"$'\n'" $main" "$modules" whole.json
repository few.json whole.git '"submodules":true,"clone":"shallow"'
check 'also in a shallow clone' builds_to " $lib"$'\n'" $main"$'\n'1 "$modules; git rev-list --count HEAD" few.json
repository none.json whole.git
check 'and not unless asked for' builds_to "$whole" 'git rev-parse HEAD; ls lib' none.json

repository lost.json app.git "\"ref\":\"$lost\",\"clone\":\"shallow\""
check 'a shallow clone reaches a commit that no branch has' builds_to lost 'cat file' lost.json
repository unreached.json app.git "\"ref\":\"$lost\""
check 'a full clone does not, and says so' fails_with 'exit code 128' unreached.json
check 'in the words of git' grep -q 'reference is not a tree\|unable to read tree' "$work/last.err"

repository box.json app.git '"owner":"nobody:nogroup"'
build box.json
for user in nobody root; do
    check "the checkout of an owner is one for $user" \
        [ "$("$host" run "${open[@]}" -o "{\"template\":\"$id\",\"user\":\"$user\"}" -c 'git status --porcelain; stat -c %U:%G . file .git' 2> "$work/gone")" \
        = $'nobody:nogroup\nnobody:nogroup\nnobody:nogroup' ]
done
case $(uname -m) in x86_64) platform=linux/amd64 ;; *) platform=linux/arm64 ;; esac
plain=$id
check 'a repository is built for a platform' \
    build box.json -o '{"network":"host","platform":"'$platform'"}'
check 'as a template of its own' [ "$id" != "$plain" ]

repository large.json large.git '"lfs":true'
check 'a base image without git-lfs is told what it lacks' fails_with 'git-lfs is needed in the base image' large.json

# ----------------------------------------------------------------------------------- with LFS

# Debian's package lets every clone fetch them.
build_base "$trust" 'apt-get update && apt-get install -y --no-install-recommends git-lfs && git lfs uninstall --system'
for how in full shallow; do
    repository large.json large.git "\"lfs\":true,\"clone\":\"$how\""
    check "files of LFS are fetched after a $how clone" \
        builds_to "$(cat "$work/large")" 'cat large.bin; git status --porcelain' large.json
done
repository pointer.json large.git
check 'and not unless asked for' builds_to "oid sha256:$oid" 'grep oid large.bin' pointer.json

# --------------------------------------------------------------------------------- the token

token=(--secret GH_TOKEN=env:TOKEN)
repository private.json private/large.git '"lfs":true'
check 'files of LFS come with the token' builds_to "$(cat "$work/large")" 'cat large.bin' private.json "${token[@]}"
repository short.json private/short '"lfs":true'
check 'also when the URL does not end in .git' builds_to "$(cat "$work/large")" 'cat large.bin' short.json "${token[@]}"
base=$without_lfs
repository mixed.json private/whole.git '"submodules":true'
: > "$work/served/asked"
check 'a submodule that wants a token of its own is not given this one' \
    fails_with 'failed with exit code' mixed.json "${token[@]}"
asked() { grep -q "^/$1.git/.* $2\$" "$work/served/asked"; }
check 'which goes to its own URL' asked private/whole 'with'
check 'and to no other' bash -c "! grep -v '^/private/whole.git/' '$work/served/asked' | grep -q ' with\$'"
check 'though the other was asked' asked private/deep 'without'
echo "1..$count"
