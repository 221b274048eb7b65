"""TextAttack's side of bench.py: one attack on the rows of task.json, its results as one line of JSON."""

import json
import os
import pathlib
import random
import sys
import warnings

warnings.filterwarnings("ignore")
folder = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(folder))
task = json.loads((folder / "task.json").read_text())
# Nothing is fetched, and nothing is left in the home folder. TextAttack reads NLTK's stop words when it is imported.
lists = folder / "nltk" / "corpora" / "stopwords"
lists.mkdir(parents=True, exist_ok=True)
STOP_WORDS = pathlib.Path(__file__).with_name("stop_words.txt").read_text().split()
(lists / "english").write_text("\n".join(STOP_WORDS))
(folder / "post_install_check_3").touch()
os.environ.update(HF_HUB_OFFLINE="1", TA_CACHE_DIR=str(folder), FLAIR_CACHE_ROOT=str(folder), NLTK_DATA=str(folder / "nltk"))

import numpy
from textattack import Attack
from textattack.constraints import Constraint
from textattack.constraints.pre_transformation import RepeatModification, StopwordModification
from textattack.goal_function_results import GoalFunctionResultStatus
from textattack.goal_functions import UntargetedClassification
from textattack.models.wrappers import ModelWrapper
from textattack.search_methods import AlzantotGeneticAlgorithm, GreedyWordSwapWIR
from textattack.shared import AttackedText
from textattack.transformations.word_swaps import WordSwap

import victim


class Victim(ModelWrapper):
    def __init__(self):
        self.model = victim.loaded(str(folder / "weights.json"))

    def __call__(self, texts):
        return numpy.array(self.model(texts))


class Listed(WordSwap):
    def _get_replacement_words(self, word):
        return task["synonyms"].get(word.lower(), [])


class ShareOfWords(Constraint):
    """At most a fifth of the words, rounded down, and at least one: TextAttack's own rounds up."""

    def __init__(self):
        super().__init__(True)

    def _check_constraint(self, transformed, reference):
        changed = len(reference.all_words_diff(transformed))
        return changed <= max(1, len(reference.words) // 5)


random.seed(1)
numpy.random.seed(1)
rules = [RepeatModification()]
if task["name"] == "textfooler":
    rules.append(StopwordModification(stopwords=set(STOP_WORDS)))
    search = GreedyWordSwapWIR(wir_method="delete")
elif task["name"] == "pwws":
    search = GreedyWordSwapWIR(wir_method="weighted-saliency")
else:
    # As in its recipe a word may change again; unlike there, children of two texts are held to the budget too.
    rules = [ShareOfWords()]
    search = AlzantotGeneticAlgorithm(pop_size=20, max_iters=10, post_crossover_check=True)
goal = UntargetedClassification(Victim(), use_cache=False)
attack = Attack(goal, rules, Listed(), search)
results = []
for text, label in task["rows"]:
    # It cuts texts into words itself, and must cut them as they were cut.
    if AttackedText(text).words != text.split():
        results.append(None)
        continue
    result = attack.attack(text, label)
    won = result.perturbed_result.goal_status == GoalFunctionResultStatus.SUCCEEDED
    changed = result.original_result.attacked_text.all_words_diff(result.perturbed_result.attacked_text)
    results.append({"won": won, "queries": result.num_queries, "words": len(changed)})
print(json.dumps(results))
