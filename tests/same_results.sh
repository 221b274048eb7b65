#!/usr/bin/env bash
# Whether every output of the quick start and of the papers' profile `smoke` has the bytes that it had at another
# commit, on this machine:
#
#     bash tests/same_results.sh COMMIT
#
# ABLATE_OLD=PROGRAM takes a program that was built from COMMIT before, ABLATE_NEW=PROGRAM one of these sources.
set -euo pipefail
cd "$(dirname "$0")/.."
commit="${1:?the commit to compare with}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

git clone -q . "$work/old"
git -C "$work/old" checkout -q "$commit"
git clone -q . "$work/new"

old="${ABLATE_OLD:-}"
if [ -z "$old" ]; then
    (cd "$work/old" && CARGO_TARGET_DIR="$work/target" cargo build --workspace)
    old="$work/target/debug/ablate"
fi
new="${ABLATE_NEW:-}"
if [ -z "$new" ]; then
    cargo build --workspace
    new="${CARGO_TARGET_DIR:-target}/debug/ablate"
fi

papers=(papers/p0_imdb_lstm papers/p1_dynamic_perturbations)
for side in old new; do
    program="$(realpath "${!side}")"
    (cd "$work/$side" && "$program" -q run)
    for paper in "${papers[@]}"; do
        (cd "$work/$side/$paper" && "$program" -q run --profile smoke)
    done
done

python3 - "$work" "${papers[@]}" <<'PYTHON'
import sqlite3, sys

def outputs(store):
    database = sqlite3.connect(f"file:{store}/provenance.db?mode=ro", uri=True)
    rows = database.execute(
        "SELECT uses.instance, outputs.name, outputs.digest FROM uses"
        " JOIN outputs ON outputs.execution = uses.execution"
        " WHERE uses.run = (SELECT MAX(id) FROM runs WHERE outcome = 'ok')"
    )
    return {(instance, name): digest for instance, name, digest in rows}

work, differ = sys.argv[1], 0
for folder in ["."] + sys.argv[2:]:
    old, new = (outputs(f"{work}/{side}/{folder}/.ablate") for side in ("old", "new"))
    changed = sorted(key for key in old if new.get(key) != old[key])
    differ += len(changed)
    print(f"{folder}: {len(old)} outputs, {len(changed)} differ")
    for instance, name in changed:
        print(f"  {instance}.{name}")
sys.exit(differ > 0)
PYTHON
