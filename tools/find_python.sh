#!/bin/sh
# Prints the Python that .venv is made with: the one named in PYTHON, or the first that fits and runs.
# Each candidate is run, because a command of that name may exist and still not work (pyenv's do).
if [ -n "${PYTHON:-}" ]; then
    set -- "$PYTHON"
else
    set -- python3.11 python3.12 python3.13 python3.14 python3
fi
fits='import sys; raise SystemExit(not (3, 11) <= sys.version_info[:2] < (3, 15))'
without_venv=
for candidate in "$@"; do
    "$candidate" -c "$fits" >/dev/null 2>&1 || continue
    if "$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        echo "$candidate"
        exit 0
    fi
    without_venv=${without_venv:-$candidate}
done
if [ -n "$without_venv" ]; then
    echo "$without_venv cannot make virtual environments: install its venv module" \
        "(on Debian and Ubuntu the package $(basename "$without_venv")-venv), then run make again." >&2
else
    echo "Stuck Ranks needs Python 3.11, 3.12, 3.13 or 3.14, and none of these runs here: $*." >&2
fi
exit 1
