"""How fast a model in a program of the user is asked: beside the same program asked by itself, in the same batches.

    python benches/external/bench.py --ablate target/release/ablate --python VENV/bin/python

Needs nothing but the standard library here; the Python that is named needs torch, and has pyarrow if answers are to
travel as Arrow. A round runs the model alone and attacked, one after the other, so that whatever else the machine does
falls on both. The model itself writes down when it was first asked and when it last answered: starting Python is not
counted on either side. A slow figure never fails this program.
"""

import argparse
import csv
import io
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent

PIPELINE = """
[pipeline]
name = "rate"
seed = 1

[stage.reviews]
kind = "dataset"
name = "reviews-grammar"
generate = {{ train = 200, dev = 100, test = {items} }}

[stage.tokens]
kind = "tokenize"
inputs = {{ rows = "reviews" }}
scheme = "words"

[stage.mine]
kind = "external-model"
inputs = {{ rows = "tokens" }}
run = [{python}, "model.py"]
files = ["model.py"]
environment = {environments}
classes = 2
batch = {batch}
env = {{ SIZE = "{size}", ROUND = "{round}" }}

[stage.attacked]
kind = "attack"
inputs = {{ victim = "mine" }}
{attack}
"""

ATTACKS = {
    "all rows at once": 'attack = "none"',
    "replace-word, 100 candidates a row": 'attack = "replace-word"\nplace = "random"\nmax_candidates = 100\nitems = 40',
}


def folders(python: str) -> list:
    """The environment of a Python, and the Python that it was made with, if that is not the system's."""
    code = "import sys; print(sys.prefix); print(sys.base_prefix)"
    prefix, base = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    return [prefix] if base.startswith("/usr") else [prefix, base]


def rate(told: dict) -> float:
    return told["items"] / (told["last"] - told["first"])


def attacked(arguments: argparse.Namespace, folder: str, attack: str, size: int, n: int) -> dict:
    """What the model wrote of one attack."""
    text = PIPELINE.format(
        items=arguments.items, python=json.dumps(arguments.python), environments=json.dumps(folders(arguments.python)),
        batch=arguments.batch, size=size, round=n, attack=ATTACKS[attack],
    )
    pathlib.Path(folder, "pipeline.toml").write_text(text)
    pathlib.Path(folder, "model.py").write_text((HERE / "model.py").read_text())
    run = [arguments.ablate, "-C", folder, "run", "-q"]
    subprocess.run(run, check=True)
    log = subprocess.run(
        [arguments.ablate, "-C", folder, "show", "attacked", "--log"], check=True, capture_output=True, text=True
    ).stdout
    told = [line for line in log.splitlines() if line.startswith("told ")]
    return json.loads(told[-1][len("told "):])


def alone(arguments: argparse.Namespace, folder: str, size: int, count: int) -> dict:
    """The same program, asking itself about as many of the same texts in full batches."""
    rows = subprocess.run(
        [arguments.ablate, "-C", folder, "export", "reviews", "--csv"], check=True, capture_output=True, text=True
    ).stdout
    texts = [row["text"] for row in csv.DictReader(io.StringIO(rows)) if row["split"] == "test"]
    texts = (texts * (1 + count // len(texts)))[:count]
    pathlib.Path(folder, "texts.json").write_text(json.dumps(texts))
    environment = {**os.environ, "SIZE": str(size), "ALONE": "texts.json", "BATCH": str(arguments.batch)}
    environment["PYTHONHASHSEED"] = "0"
    answer = subprocess.run(
        [arguments.python, "model.py"], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return json.loads(answer.stdout.split("told ")[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ablate", default="ablate")
    parser.add_argument("--python", default="python3", help="one with torch")
    parser.add_argument("--items", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    arguments.ablate = str(pathlib.Path(arguments.ablate).resolve()) if "/" in arguments.ablate else arguments.ablate
    print("| attack | units | asked by ablate | alone, batches of 64 | share | of its time it computes |")
    print("|---|---|---|---|---|---|")
    for attack in ATTACKS:
        for size in (32, 256):
            ours, theirs, busy = [], [], []
            for n in range(arguments.rounds):
                with tempfile.TemporaryDirectory() as folder:
                    told = attacked(arguments, folder, attack, size, n)
                    theirs.append(rate(alone(arguments, folder, size, told["items"])))
                ours.append(rate(told))
                busy.append(told["busy"] / (told["last"] - told["first"]))
            share = statistics.median(a / b for a, b in zip(ours, theirs))
            print(
                f"| {attack} | {size} | {statistics.median(ours):.0f} items/s | {statistics.median(theirs):.0f} items/s "
                f"| {share:.0%} | {statistics.median(busy):.0%} |", flush=True,
            )


main()
