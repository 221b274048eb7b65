"""Makes language.json with PyTorch, in double precision: `python language.py`, beside this file.

A language model of two LSTM layers, separate or one set of weights for both: the loss of each step of a text and its
perplexity, states carried from the first word to the last. The test reads the stored file only.
"""

import json
import pathlib

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(3)
torch.set_default_dtype(torch.float64)
TEXT = [1, 4, 2, 6, 0, 3, 3, 5, 1, 2, 4, 6]
WORDS, DIM = 7, 3


def flat(x):
    return [float(f"{v:.12g}") for v in x.detach().contiguous().view(-1).tolist()]


def case(tied):
    embedding, head = nn.Embedding(WORDS, DIM), nn.Linear(DIM, WORDS)
    layers = [nn.LSTM(DIM, DIM) for _ in range(1 if tied else 2)]
    for layer in layers:
        nn.init.zeros_(layer.bias_hh_l0)
    x = embedding(torch.tensor(TEXT[:-1]))[:, None]
    for number in range(2):
        x, _ = layers[0 if tied else number](x)
    losses = F.cross_entropy(head(x[:, 0]), torch.tensor(TEXT[1:]), reduction="none")
    weights = {"embedding": embedding.weight, "head.weight": head.weight.t(), "head.bias": head.bias}
    for number, layer in enumerate(layers):
        weights[f"lstm.{number}.input"] = layer.weight_ih_l0.t()
        weights[f"lstm.{number}.recurrent"] = layer.weight_hh_l0.t()
        weights[f"lstm.{number}.bias"] = layer.bias_ih_l0
    return {
        "tied": tied,
        "losses": flat(losses),
        "perplexity": float(losses.detach().mean().exp()),
        "weights": {name: flat(w) for name, w in weights.items()},
    }


path = pathlib.Path(__file__).parent / "language.json"
path.write_text(json.dumps({"text": TEXT, "cases": [case(False), case(True)]}) + "\n")
