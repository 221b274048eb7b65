"""A logistic model of word counts in plain Python: `train` learns it, otherwise it is served to `ablate`."""

import json
import math
import random
import sys


def words(text):
    return text.lower().split()


def train():
    rows = json.load(open("train.json"))
    weights, bias = {}, 0.0
    order = random.Random(1)
    for epoch in range(8):
        order.shuffle(rows)
        for text, label in rows:
            found = words(text)
            z = bias + sum(weights.get(word, 0.0) for word in found)
            step = 0.1 * (label - 1 / (1 + math.exp(-max(-30.0, min(30.0, z)))))
            bias += step
            for word in found:
                weights[word] = weights.get(word, 0.0) * (1 - 1e-3) + step
    json.dump({"weights": weights, "bias": bias}, open("weights.json", "w"))


def loaded(path="weights.json"):
    model = json.load(open(path))
    weights, bias = model["weights"], model["bias"]

    def predict(texts):
        answers = []
        for text in texts:
            z = bias + sum(weights.get(word, 0.0) for word in words(text))
            p = 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))
            answers.append([1 - p, p])
        return answers

    return predict


if __name__ == "__main__":
    if sys.argv[1:] == ["train"]:
        train()
    else:
        import ablate

        ablate.serve(predict=loaded())
