#!/bin/sh
# Writes the lock files with uv: `make lock`, for maintainers. Versions stay as they are where they fit.
#   PYTHON=python3.11 sh tools/make_lock.sh [torch==2.14.0 | --upgrade]
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
"$PYTHON" -m venv "$folder"
"$folder/bin/pip" install --quiet "uv>=0.13,<0.14"

wanted=${1:-$(grep ^torch== requirements-torch.lock)} options=
[ "$wanted" != --upgrade ] || { options=--upgrade wanted=; }
printf '%s\n' setuptools "$wanted" >"$folder/besides" # setuptools installs this checkout
cat requirements.lock requirements-test.lock requirements-torch.lock >"$folder/lock"

compile() { # for every system and every Python at once, from 3.11.0 on
    "$folder/bin/uv" pip compile --no-config --quiet --universal --generate-hashes --no-header \
        --fork-strategy fewest --python-version 3.11 --no-annotate "$@" \
        --output-file "$folder/lock" pyproject.toml "$folder/besides" >/dev/null
    # Without PyTorch and what only its CUDA build brings, which pins most of that itself.
    awk '/^[a-z]/ { kept = !/^(torch==|triton==|nvidia-|cuda-)/ } kept' "$folder/lock"
}
compile $options --extra labs --extra test >"$folder/all"
grep -o '^torch==[^ ;]*' "$folder/lock" >"$folder/torch"
compile --extra labs >"$folder/labs" # at the same versions, which uv reads in the lock

made="Made by \`make lock\` and changed in no other way."
{
    echo "# What the guide needs, but PyTorch; to be installed with --no-deps. $made"
    cat "$folder/labs"
} >requirements.lock
{
    echo "# What the tests need besides requirements.lock; to be installed with --no-deps. $made"
    awk 'NR == FNR { if (/^[a-z]/) labs[$1]; next } /^[a-z]/ { kept = !($1 in labs) } kept' \
        "$folder/labs" "$folder/all"
} >requirements-test.lock
{
    echo "# $made Without hashes: pip takes a file whose hash is listed before one that"
    echo "# has none, so the CUDA build of the index before the CPU build in a folder (find-links)."
    cat "$folder/torch"
} >requirements-torch.lock
echo "The lock files are new: see git diff, then run make fresh."
