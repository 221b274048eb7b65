"""How fast a model in a program of the user is asked: beside its own rate with the same requests.

    python benches/external/bench.py --ablate target/release/ablate --python VENV/bin/python

Needs nothing but the standard library here; the Python that is named needs torch, and has pyarrow if answers are to
travel as Arrow. The model itself writes down when it was first asked, when it last answered, and for how long it computed:
what it computes in a second is its own rate with the same requests, and the rest of its time it waits for `ablate` or
reads and writes; it looks whether the next request was there when an answer was ready. Starting Python is not counted. Beside it, full batches of the same texts, in a process of their own. A
slow figure never fails this program.
"""

import argparse
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
    "replace-word, 100 candidates a row": 'attack = "replace-word"\nplace = "random"\nmax_candidates = 100\nitems = 160',
}


def folders(python: str) -> list:
    """The environment of a Python, and the Python that it was made with, if that is not the system's."""
    code = "import sys; print(sys.prefix); print(sys.base_prefix)"
    prefix, base = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    return [prefix] if base.startswith("/usr") else [prefix, base]


def rate(told: dict) -> float:
    return told["items"] / (told["last"][0] - told["first"][0])


def share(told: dict, clock: int) -> float:
    """How much of its time, from the first question to the last answer, the model computes."""
    return told["busy"][clock] / (told["last"][clock] - told["first"][clock])


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
    show = [arguments.ablate, "-C", folder, "show", "--json", "-n", "1000000"]
    table = lambda name: json.loads(subprocess.run([*show, name], check=True, capture_output=True).stdout)["head"]
    words = [row["token"] for row in table("tokens.vocab")]
    texts = [" ".join(words[n] for n in row["ids"]) for row in table("tokens.tokens") if row["split"] == "test"]
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
    parser.add_argument("--items", type=int, default=16384)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    arguments.ablate = str(pathlib.Path(arguments.ablate).resolve()) if "/" in arguments.ablate else arguments.ablate
    print("| attack | units | items in a request | asked by ablate | the same requests alone | share | by CPU time | next request was there | full batches alone |")
    print("|---|---|---|---|---|---|---|---|---|")
    for attack in ATTACKS:
        for size in (32, 256):
            asked, full = [], []
            for n in range(arguments.rounds):
                with tempfile.TemporaryDirectory() as folder:
                    asked.append(attacked(arguments, folder, attack, size, n))
                    full.append(alone(arguments, folder, size, asked[-1]["items"]))
            median = lambda values: statistics.median(list(values))
            print(
                f"| {attack} | {size} | {median(told['items'] / told['requests'] for told in asked):.0f} "
                f"| {median(map(rate, asked)):.0f} items/s | {median(told['items'] / told['busy'][0] for told in asked):.0f} items/s "
                f"| {median(share(told, 0) for told in asked):.0%} | {median(share(told, 1) for told in asked):.0%} "
                f"| {median(told['ahead'] / told['requests'] for told in asked):.0%} | {median(map(rate, full)):.0f} items/s |",
                flush=True,
            )


main()
