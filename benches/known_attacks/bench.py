"""Known attacks beside TextAttack's: the same victim, sentences and synonyms, successes and queries side by side.

    ABLATE_MIRROR=DIR python benches/known_attacks/bench.py --ablate target/release/ablate --python VENV/bin/python

The Python that is named needs TextAttack (benches/README.md says how to install it); this one needs nothing. The victim
is a logistic model of word counts in plain Python: `ablate` asks it as an external model, TextAttack in its own process.
Synonyms are those of `counterfit`, at most eight for a word. TextAttack's parts are put together as its recipes have
them, without what needs a network: part of speech, sentence encoder, language model. Ours are asked to do without too.
"""

import argparse
import csv
import io
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent

PIPELINE = """
[pipeline]
name = "known"
seed = 7

[stage.sentences]
kind = "dataset"
name = "sst2-sentences"

[stage.counterfit]
kind = "dataset"
name = "counterfit"

[stage.tokens]
kind = "tokenize"
inputs = {{ rows = "sentences" }}
scheme = "words"

[stage.mine]
kind = "external-model"
inputs = {{ rows = "tokens" }}
run = ["/usr/bin/python3", "victim.py"]
files = ["victim.py", "weights.json"]
classes = 2

[axes.adversary]
textfooler = {{ attack = "textfooler", sentence_similarity = -1.0, same_part_of_speech = false, max_candidates = 8 }}
pwws = {{ attack = "pwws", max_candidates = 8 }}
genetic = {{ attack = "genetic", max_candidates = 8, population = 20, generations = 10 }}

[stage.attacked]
kind = "attack"
inputs = {{ victim = "mine", synonyms = "counterfit" }}
with = ["adversary"]
items = {items}
among = "correct"
"""


def asked(arguments: argparse.Namespace, folder: str, *words: str) -> str:
    command = [arguments.ablate, "-C", folder, *words]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode != 0:
        sys.exit(answer.stderr)
    return answer.stdout


def table(text: str) -> list:
    csv.field_size_limit(1 << 30)
    return list(csv.DictReader(io.StringIO(text)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ablate", default="ablate")
    parser.add_argument("--python", default="python3", help="one with TextAttack")
    parser.add_argument("--items", type=int, default=200)
    arguments = parser.parse_args()
    arguments.ablate = str(pathlib.Path(arguments.ablate).resolve()) if "/" in arguments.ablate else arguments.ablate
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "pipeline.toml").write_text(PIPELINE.format(items=arguments.items))
        (path / "victim.py").write_text((HERE / "victim.py").read_text())
        (path / "weights.json").write_text("{}")
        asked(arguments, folder, "run", "-q", "tokens", "counterfit")
        # Training is the victim's own business, on the sentences as they are cut here.
        rows = table(asked(arguments, folder, "export", "sentences", "--csv"))
        (path / "train.json").write_text(json.dumps([[r["text"], int(r["label"])] for r in rows if r["split"] == "train"]))
        subprocess.run([sys.executable, "victim.py", "train"], cwd=folder, check=True)
        asked(arguments, folder, "run", "-q")
        synonyms: dict = {}
        for row in table(asked(arguments, folder, "export", "counterfit", "--csv")):
            synonyms.setdefault(row["word"], []).append(row["other"])
        known = {row["token"] for row in table(asked(arguments, folder, "export", "tokens.vocab", "--csv"))}
        # What is not in the vocabulary cannot be put into a row here.
        synonyms = {word: [s for s in all if s in known][:8] for word, all in synonyms.items()}
        print("| attack | ours: success | queries | words | TextAttack: success | queries | words |")
        print("|---|---|---|---|---|---|---|")
        for name in ("textfooler", "pwws", "genetic"):
            ours = table(asked(arguments, folder, "export", f"attacked[adversary={name}].examples", "--csv"))
            task = {
                "name": name, "synonyms": synonyms,
                "rows": [[row["original_text"], int(row["label"])] for row in ours],
            }
            (path / "task.json").write_text(json.dumps(task))
            run = [arguments.python, str(HERE / "side.py"), folder]
            answer = subprocess.run(run, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "0"})
            if answer.returncode != 0:
                print(f"| {name} | skipped: {answer.stderr.strip().splitlines()[-1]} |")
                continue
            theirs = json.loads(answer.stdout.strip().splitlines()[-1])
            won = [row for row in ours if row["success"] == "true"]
            show = lambda wins, queries, words: (
                f"{wins} of {len(ours)} | {statistics.mean(queries):.1f} | {statistics.mean(words or [0]):.2f}"
            )
            mine = show(len(won), [int(row["queries"]) for row in ours], [int(row["words_changed"]) for row in won])
            peer = show(theirs["won"], theirs["queries"], theirs["words"])
            print(f"| {name} | {mine} | {peer} |", flush=True)


main()
