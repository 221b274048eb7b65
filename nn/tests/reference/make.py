"""Makes vectors.json and bert.safetensors with PyTorch, in double precision: `python make.py`, beside this file.

Each case has inputs, weights in our names and layouts, the gradient `dy` that is sent back
through the outputs, and what PyTorch's autograd gives. The tests read the stored files only.
"""

import json
import pathlib
import struct

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(7)
torch.set_default_dtype(torch.float64)
HERE = pathlib.Path(__file__).parent
LENS = [5, 3, 1]
TIME, BATCH = 5, 3
REAL = torch.tensor([[t < n for n in LENS] for t in range(TIME)])
cases = {}


def flat(x):
    return [float(f"{v:.12g}") for v in x.detach().contiguous().view(-1).tolist()]


def case(name, x, outs, weights, masked=True):
    """`weights` maps our name to (tensor that has a gradient, function to our layout)."""
    total, dys = 0, []
    for out in outs:
        dy = torch.randn_like(out)
        if masked:
            dy = dy * REAL[..., None]
        total, dys = total + (out * dy).sum(), dys + [flat(dy)]
    total.backward()
    cases[name] = {
        "dim": x.shape[-1],
        "lens": LENS,
        "x": flat(x),
        "dx": flat(x.grad),
        "y": [flat(o * REAL[..., None] if masked else o) for o in outs],
        "dy": dys,
        "weights": {k: flat(f(w)) for k, (w, f) in weights.items()},
        "dw": {k: flat(f(w.grad)) for k, (w, f) in weights.items() if not k.startswith("=")},
    }


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


def same(w):
    return w


def t(w):
    return w.t()


def packed(rnn, x):
    out, _ = rnn(nn.utils.rnn.pack_padded_sequence(x, LENS))
    return nn.utils.rnn.pad_packed_sequence(out)[0]


def recurrent(kind, prefix, suffix, rnn):
    return {
        f"{prefix}.input": (getattr(rnn, f"weight_ih_l0{suffix}"), t),
        f"{prefix}.recurrent": (getattr(rnn, f"weight_hh_l0{suffix}"), t),
        f"{prefix}.bias": (getattr(rnn, f"bias_ih_l0{suffix}"), same),
    }


def no_second_bias(rnn):
    for name, w in rnn.named_parameters():
        if name.startswith("bias_hh"):
            nn.init.zeros_(w)
    return rnn


x, lstm = leaf(TIME, BATCH, 3), no_second_bias(nn.LSTM(3, 4, bidirectional=True))
case("bidirectional lstm", x, [packed(lstm, x)], {**recurrent("lstm", "a", "", lstm), **recurrent("lstm", "b", "_reverse", lstm)})

x, rnn = leaf(TIME, BATCH, 3), no_second_bias(nn.RNN(3, 4))
case("rnn", x, [packed(rnn, x)], recurrent("rnn", "a", "", rnn))

# PyTorch's own GRU resets after the recurrent product; this one before it, as in the paper.
x = leaf(TIME, BATCH, 3)
w = {"input": leaf(3, 8), "input_new": leaf(3, 4), "recurrent": leaf(4, 8), "recurrent_new": leaf(4, 4), "bias": leaf(8), "bias_new": leaf(4)}
h, outs = torch.zeros(BATCH, 4), []
for step in range(TIME):
    z, r = torch.sigmoid(x[step] @ w["input"] + h @ w["recurrent"] + w["bias"]).chunk(2, 1)
    n = torch.tanh(x[step] @ w["input_new"] + (r * h) @ w["recurrent_new"] + w["bias_new"])
    h = torch.where(REAL[step][:, None], (1 - z) * n + z * h, h)
    outs.append(h)
case("gru", x, [torch.stack(outs)], {f"a.{k}": (v, same) for k, v in w.items()})

x, mha = leaf(TIME, BATCH, 6), nn.MultiheadAttention(6, 2)
nn.init.normal_(mha.in_proj_bias)
nn.init.normal_(mha.out_proj.bias)
y, _ = mha(x, x, x, key_padding_mask=~REAL.t())
parts = {}
for k, name in enumerate(["query", "key", "value"]):
    parts[f"a.{name}.weight"] = (mha.in_proj_weight, lambda w, k=k: w[6 * k : 6 * k + 6].t())
    parts[f"a.{name}.bias"] = (mha.in_proj_bias, lambda w, k=k: w[6 * k : 6 * k + 6])
parts["a.out.weight"], parts["a.out.bias"] = (mha.out_proj.weight, t), (mha.out_proj.bias, same)
case("multi-head attention", x, [y], parts)


def block_weights(block, dim, name):
    parts, attention = {}, block.self_attn
    for k, part in enumerate(["query", "key", "value"]):
        parts[f"{name}.attention.{part}.weight"] = (attention.in_proj_weight, lambda w, k=k: w[dim * k : dim * k + dim].t())
        parts[f"{name}.attention.{part}.bias"] = (attention.in_proj_bias, lambda w, k=k: w[dim * k : dim * k + dim])
    parts[f"{name}.attention.out.weight"], parts[f"{name}.attention.out.bias"] = (attention.out_proj.weight, t), (attention.out_proj.bias, same)
    for ours, theirs in [("norm", block.norm1), ("norm_out", block.norm2)]:
        parts[f"{name}.{ours}.scale"], parts[f"{name}.{ours}.shift"] = (theirs.weight, same), (theirs.bias, same)
    for ours, theirs in [("up", block.linear1), ("down", block.linear2)]:
        parts[f"{name}.{ours}.weight"], parts[f"{name}.{ours}.bias"] = (theirs.weight, t), (theirs.bias, same)
    return parts


x, block = leaf(TIME, BATCH, 4), nn.TransformerEncoderLayer(4, 2, 7, dropout=0.0, activation="gelu", layer_norm_eps=1e-3)
for w in block.parameters():
    nn.init.normal_(w)
case("encoder block", x, [block(x, src_key_padding_mask=~REAL.t())], block_weights(block, 4, "a"))

# Windows of 2 rows of one item at a time, because items have different lengths; one row of zeros at either end.
x, conv = leaf(TIME, BATCH, 3), nn.Conv1d(3, 5, 2, padding=1)
best = [torch.relu(conv(x[:n, b].t()[None])).amax(2)[0] for b, n in enumerate(LENS)]
to_ours = lambda w: w.permute(2, 1, 0).reshape(6, 5)
case("word windows", x, [torch.stack(best)[None]], {"a.weight": (conv.weight, to_ours), "a.bias": (conv.bias, same)}, masked=False)

x, hidden, query = leaf(TIME, BATCH, 3), nn.Linear(3, 4), nn.Linear(4, 1, bias=False)
scores = query(torch.tanh(hidden(x)))[..., 0].masked_fill(~REAL, -torch.inf)
pooled = (torch.softmax(scores, 0)[..., None] * x).sum(0, keepdim=True)
case("attention pooling", x, [pooled], {"a.hidden.weight": (hidden.weight, t), "a.hidden.bias": (hidden.bias, same), "a.query.weight": (query.weight, t)}, masked=False)

# The decoder reads x and looks at memory = x M.
x, units, size = leaf(TIME, BATCH, 3), 4, 5
memory_map, h0, c0 = leaf(3, 2), leaf(1, units), leaf(1, units)
w = {"cell.input": leaf(3, 4 * units), "cell.recurrent": leaf(units, 4 * units), "cell.bias": leaf(4 * units), "context": leaf(2, 4 * units), "keys.weight": leaf(2, size), "query.weight": leaf(units, size), "query.bias": leaf(size), "score": leaf(size)}
memory = x @ memory_map
keys, h, c, u = memory @ w["keys.weight"], h0.expand(BATCH, -1), c0.expand(BATCH, -1), torch.zeros(BATCH, 2)
hs, us = [], []
for step in range(TIME):
    i, f, g, o = (x[step] @ w["cell.input"] + u @ w["context"] + h @ w["cell.recurrent"] + w["cell.bias"]).chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    s = torch.tanh(keys + h @ w["query.weight"] + w["query.bias"]) @ w["score"]
    a = torch.softmax(s.masked_fill(~REAL, -torch.inf), 0)
    u = (a[..., None] * memory).sum(0)
    hs.append(h)
    us.append(u)
parts = {f"a.{k}": (v, same) for k, v in w.items()}
parts |= {"m.weight": (memory_map, same), "s.h0": (h0, same), "s.c0": (c0, same)}
case("bahdanau decoder", x, [torch.stack(hs), torch.stack(us)], parts, masked=False)

(HERE / "vectors.json").write_text(json.dumps(cases, separators=(",", ":")) + "\n")

# A tiny BERT under its published names, and its pooled vector for texts of different lengths.
dim, heads, inner, layers = 6, 2, 10, 2
table, places, segments = nn.Embedding(11, dim), nn.Embedding(8, dim), nn.Embedding(2, dim)
norm, pooler = nn.LayerNorm(dim, eps=1e-12), nn.Linear(dim, dim)
blocks = [nn.TransformerEncoderLayer(dim, heads, inner, dropout=0.0, activation="gelu", layer_norm_eps=1e-12) for _ in range(layers)]
names = {"embeddings.word_embeddings.weight": table.weight, "embeddings.position_embeddings.weight": places.weight, "embeddings.token_type_embeddings.weight": segments.weight}
names |= {"embeddings.LayerNorm.weight": norm.weight, "embeddings.LayerNorm.bias": norm.bias, "pooler.dense.weight": pooler.weight, "pooler.dense.bias": pooler.bias}
for k, block in enumerate(blocks):
    for w in block.parameters():
        nn.init.normal_(w, std=0.5)
    at = f"encoder.layer.{k}"
    for j, part in enumerate(["query", "key", "value"]):
        names[f"{at}.attention.self.{part}.weight"] = block.self_attn.in_proj_weight[dim * j : dim * j + dim]
        names[f"{at}.attention.self.{part}.bias"] = block.self_attn.in_proj_bias[dim * j : dim * j + dim]
    for ours, layer in [("attention.output.dense", block.self_attn.out_proj), ("attention.output.LayerNorm", block.norm1), ("intermediate.dense", block.linear1), ("output.dense", block.linear2), ("output.LayerNorm", block.norm2)]:
        names[f"{at}.{ours}.weight"], names[f"{at}.{ours}.bias"] = layer.weight, layer.bias
texts, pooled = [[1, 5, 3, 9, 2], [1, 4, 2]], []
for text in texts:
    x = norm(table(torch.tensor(text)) + places.weight[: len(text)] + segments.weight[0])[:, None]
    for block in blocks:
        x = block(x)
    pooled.append(torch.tanh(pooler(x[0, 0])))
header, data = {"__metadata__": {"format": "pt"}}, b""
for name, w in names.items():
    w = w.detach().to(torch.float32).contiguous()
    raw = struct.pack(f"<{w.numel()}f", *w.view(-1).tolist())
    header[name] = {"dtype": "F32", "shape": list(w.shape), "data_offsets": [len(data), len(data) + len(raw)]}
    data += raw
head = json.dumps(header).encode()
(HERE / "bert.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + data)
(HERE / "bert.json").write_text(json.dumps({"texts": texts, "pooled": [flat(p) for p in pooled]}) + "\n")
