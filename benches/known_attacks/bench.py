"""Known attacks beside TextAttack's: the same victim, sentences and synonyms, successes and queries side by side.

    ABLATE_MIRROR=DIR python benches/known_attacks/bench.py --ablate target/release/ablate --python VENV/bin/python

The Python that is named needs TextAttack (benches/README.md says how to install it); this one needs nothing. The victim
is a logistic model of words in plain Python: `ablate` asks it as an external model, TextAttack in its own process.
Synonyms are those of `counterfit`, at most eight for a word. TextAttack's parts are put together as its recipes have
them, without what needs a download (part of speech, sentence encoder, language model) and with our budget of words; ours
are asked to do without too. A row where the two differ is no failure: the table says how many.
"""

import argparse
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


def rows(arguments: argparse.Namespace, folder: str, result: str) -> list:
    return json.loads(asked(arguments, folder, "show", result, "--json", "-n", "200000"))["head"]


def prepared(arguments: argparse.Namespace, folder: str) -> tuple:
    """Data, a trained victim, and what it was attacked with: the words by id, and synonyms by word."""
    path = pathlib.Path(folder)
    (path / "pipeline.toml").write_text(PIPELINE.format(items=arguments.items))
    (path / "victim.py").write_text((HERE / "victim.py").read_text())
    (path / "weights.json").write_text("{}")
    asked(arguments, folder, "run", "-q", "tokens", "counterfit")
    words = [row["token"] for row in rows(arguments, folder, "tokens.vocab")]
    train = [row for row in rows(arguments, folder, "tokens.tokens") if row["split"] == "train"]
    texts = [[" ".join(words[n] for n in row["ids"]), row["label"]] for row in train]
    (path / "train.json").write_text(json.dumps(texts))
    subprocess.run([sys.executable, "victim.py", "train"], cwd=folder, check=True)
    synonyms: dict = {}
    for row in rows(arguments, folder, "counterfit"):
        synonyms.setdefault(row["source"], []).append(row["target"])
    # What is not in the vocabulary cannot be put into a row here.
    known = set(words)
    synonyms = {word: [s for s in all if s in known and s != word][:8] for word, all in synonyms.items()}
    return words, synonyms


def theirs(arguments: argparse.Namespace, folder: str, task: dict) -> list:
    pathlib.Path(folder, "task.json").write_text(json.dumps(task))
    run = [arguments.python, str(HERE / "side.py"), folder]
    answer = subprocess.run(run, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "0"})
    if answer.returncode != 0:
        sys.exit(answer.stderr)
    return json.loads(answer.stdout.strip().splitlines()[-1])


def shown(results: list) -> str:
    won = [row for row in results if row["won"]]
    share, count = len(won) / len(results), len(results)
    error = (share * (1 - share) / count) ** 0.5
    words = statistics.mean([row["words"] for row in won] or [0])
    return f"{share:.1%} ± {error:.1%} | {statistics.mean(row['queries'] for row in results):.1f} | {words:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ablate", default="ablate")
    parser.add_argument("--python", default="python3", help="one with TextAttack")
    parser.add_argument("--items", type=int, default=500)
    arguments = parser.parse_args()
    arguments.ablate = str(pathlib.Path(arguments.ablate).resolve()) if "/" in arguments.ablate else arguments.ablate
    with tempfile.TemporaryDirectory() as folder:
        words, synonyms = prepared(arguments, folder)
        asked(arguments, folder, "run", "-q")
        print("| attack | sentences | ours: success | queries | words | TextAttack: success | queries | words | same outcome | same queries |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        for name in ("textfooler", "pwws", "genetic"):
            ours = rows(arguments, folder, f"attacked[adversary={name}].examples")
            task = {
                "name": name, "synonyms": synonyms,
                "rows": [[" ".join(words[n] for n in row["original"]), row["label"]] for row in ours],
            }
            both = [(row, peer) for row, peer in zip(ours, theirs(arguments, folder, task)) if peer is not None]
            plain, peer = zip(*both)
            # TextAttack counts the first question, which here is asked before the attack.
            mine = [
                {"won": row["success"], "queries": 1 + row["queries"], "words": row["words_changed"]} for row in plain
            ]
            same = sum(a["won"] == b["won"] for a, b in zip(mine, peer))
            equal = sum(a["queries"] == b["queries"] for a, b in zip(mine, peer))
            print(f"| {name} | {len(plain)} of {len(ours)} | {shown(mine)} | {shown(peer)} | {same} | {equal} |", flush=True)


main()
