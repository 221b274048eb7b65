#!/usr/bin/env bash
# Whether every output of the quick start and of the papers' profile `smoke`, as that commit has their files, has the
# bytes that it had at another commit, on this machine:
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
# The same files on both sides: only the programs differ, and files of an older edition keep their meaning.
git clone -q "$work/old" "$work/new"
git -C "$work/new" checkout -q "$commit"

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

python3 - "$work" "$(realpath "$old")" "$(realpath "$new")" "${papers[@]}" <<'PYTHON'
import json, re, sqlite3, subprocess, sys

# What had another name before: stages, columns and labels inside tables. A table that has one of them is compared
# row by row, with the old names replaced.
RENAMED = [
    ("fig7-fooled", "fig7-success"),
    (r'"col":"fooled"', '"col":"success rate"'),
    (r'"fooled":', '"success_rate":'),
    (r'"row":"true (positive|negative)"', r'"row":"actual \1"'),
    (r'"col":"said (positive|negative)"', r'"col":"predicted \1"'),
]

def renamed(text):
    for old, new in RENAMED:
        text = re.sub(old, new, text)
    return text

def outputs(store):
    database = sqlite3.connect(f"file:{store}/provenance.db?mode=ro", uri=True)
    rows = database.execute(
        "SELECT uses.instance, outputs.name, outputs.digest FROM uses"
        " JOIN outputs ON outputs.execution = uses.execution"
        " WHERE uses.run = (SELECT MAX(id) FROM runs WHERE outcome = 'ok')"
    )
    return {(renamed(instance), name): (instance, digest) for instance, name, digest in rows}

def rows(program, folder, profile, instance, output):
    shown = subprocess.run(
        [program, "-C", folder, *profile, "--json", "show", f"{instance}.{output}", "-n", "1000000"],
        check=True, capture_output=True, text=True,
    ).stdout
    found = json.loads(shown)["head"]
    found = json.loads(renamed(json.dumps(found, separators=(",", ":"))))
    return sorted(json.dumps(row, sort_keys=True) for row in found)

work, programs, differ = sys.argv[1], dict(old=sys.argv[2], new=sys.argv[3]), 0
for folder in ["."] + sys.argv[4:]:
    profile = [] if folder == "." else ["--profile", "smoke"]
    old, new = (outputs(f"{work}/{side}/{folder}/.ablate") for side in ("old", "new"))
    changed, mapped = [], 0
    for key, (instance, digest) in sorted(old.items()):
        if key not in new:
            changed.append(key)
        elif new[key][1] != digest:
            sides = (
                rows(programs[side], f"{work}/{side}/{folder}", profile, name, key[1])
                for side, name in (("old", instance), ("new", new[key][0]))
            )
            if next(sides) == next(sides):
                mapped += 1
            else:
                changed.append(key)
    differ += len(changed)
    print(f"{folder}: {len(old)} outputs, {mapped} with renamed labels, {len(changed)} differ")
    for instance, name in changed:
        print(f"  {instance}.{name}")
sys.exit(differ > 0)
PYTHON
