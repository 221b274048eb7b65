"""Makes minilm_l3.json from paraphrase-MiniLM-L3-v2 in 16 bits: `python minilm_l3.py FILE.safetensors`, beside this file.

The forward pass is written out here in double precision, from BERT's paper, with NumPy's arrays only. The weights
themselves are not stored: the test that reads minilm_l3.json runs when ABLATE_MIRROR names a mirror that has them.
"""

import json
import math
import pathlib
import struct
import sys

import numpy as np

LAYERS, HEADS, EPS = 3, 12, 1e-12
TEXTS = [[101, 2023, 2003, 2019, 2742, 6251, 102], [101, 102]]
TEXTS += [[101] + [(i * 7919 + k * 104729) % 20000 + 1996 for i in range(3 + 2 * k)] + [102] for k in range(18)]

data = pathlib.Path(sys.argv[1]).read_bytes()
(size,) = struct.unpack("<Q", data[:8])
weights = {}
for name, entry in json.loads(data[8 : 8 + size]).items():
    if name != "__metadata__":
        start, end = entry["data_offsets"]
        flat = np.frombuffer(data[8 + size + start : 8 + size + end], dtype=np.float16)
        weights[name] = flat.astype(np.float64).reshape(entry["shape"])

erf = np.vectorize(math.erf)


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def dense(x, name):
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def norm(x, name):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + EPS) * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def hidden_states(ids):
    e = "embeddings"
    x = weights[f"{e}.word_embeddings.weight"][ids] + weights[f"{e}.position_embeddings.weight"][: len(ids)]
    x = norm(x + weights[f"{e}.token_type_embeddings.weight"][0], f"{e}.LayerNorm")
    layers = [x]
    for k in range(LAYERS):
        at = f"encoder.layer.{k}"
        q, key, v = (
            dense(x, f"{at}.attention.self.{part}").reshape(len(ids), HEADS, -1).transpose(1, 0, 2)
            for part in ["query", "key", "value"]
        )
        mixed = softmax(q @ key.transpose(0, 2, 1) / math.sqrt(q.shape[-1])) @ v
        mixed = dense(mixed.transpose(1, 0, 2).reshape(len(ids), -1), f"{at}.attention.output.dense")
        x = norm(x + mixed, f"{at}.attention.output.LayerNorm")
        x = norm(x + dense(gelu(dense(x, f"{at}.intermediate.dense")), f"{at}.output.dense"), f"{at}.output.LayerNorm")
        layers.append(x)
    return layers


cases = []
for ids in TEXTS:
    layers = hidden_states(ids)
    sentence = layers[-1].mean(0)
    sentence /= math.sqrt((sentence * sentence).sum())
    numbers = [[round(float(x), 7) for x in layer[:, :3].reshape(-1)] for layer in layers]
    cases.append({"ids": ids, "hidden": numbers, "sentence": [round(float(x), 8) for x in sentence]})
pathlib.Path(__file__).with_name("minilm_l3.json").write_text(json.dumps(cases, separators=(",", ":")))
