"""PyTorch's side of `cargo bench -p nn`: reads a workload's name a line, answers with its time.

Started by nn/benches/nn.rs; needs `pip install torch`. Each answer is the wall and CPU
seconds of one step (or pass), as `wall cpu`.
"""

import sys
import time
import warnings

warnings.filterwarnings("ignore")
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(int(sys.argv[1]))
# Back-propagation through 250 steps underflows; without this PyTorch takes ten times as long.
torch.set_flush_denormal(True)
torch.manual_seed(1)


class Classifier(nn.Module):
    def __init__(self, rnn, units, classes, hidden=0):
        super().__init__()
        self.rnn = rnn
        self.hidden = nn.Linear(units, hidden) if hidden else None
        self.head = nn.Linear(hidden or units, classes)

    def forward(self, x):
        h = self.rnn(x)[0][-1]
        if self.hidden is not None:
            h = F.relu(self.hidden(h))
        return self.head(h)


def training(model, x, classes, batch, optimiser=torch.optim.Adam):
    y, opt = torch.randint(0, classes, (batch,)), optimiser(model.parameters())

    def step():
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()

    return step


def lstm(batch):
    return training(Classifier(nn.LSTM(50, 64), 64, 2), torch.randn(250, batch, 50), 2, batch)


def language_model():
    table, rnn, head = nn.Embedding(10000, 200), nn.LSTM(200, 200, 2), nn.Linear(200, 10000)
    weights = [*table.parameters(), *rnn.parameters(), *head.parameters()]
    opt = torch.optim.SGD(weights, lr=1.0)
    x, y = torch.randint(0, 10000, (20, 20)), torch.randint(0, 10000, (20, 20))
    state = [torch.zeros(2, 20, 200), torch.zeros(2, 20, 200)]

    def step():
        opt.zero_grad()
        h, (state[0], state[1]) = rnn(table(x), (state[0].detach(), state[1].detach()))
        loss = F.cross_entropy(head(h).view(-1, 10000), y.view(-1), reduction="sum") / 20
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 5.0)
        opt.step()

    return step


def input_gradient(batch):
    model = Classifier(nn.LSTM(50, 64), 64, 2)
    for w in model.parameters():
        w.requires_grad_(False)
    x, y = torch.randn(250, batch, 50), torch.randint(0, 2, (batch,))

    def step():
        leaf = x.clone().requires_grad_(True)
        loss = F.cross_entropy(model(leaf), y, reduction="sum")
        return torch.autograd.grad(loss, leaf)

    return step


def character_convolution():
    conv = nn.Conv1d(25, 1000, 6)
    x = torch.randn(3840, 25, 20)

    def step():
        conv.zero_grad()
        leaf = x.clone().requires_grad_(True)
        torch.tanh(conv(leaf)).amax(2).sum().backward()

    return step


class CharCnn(nn.Module):
    """Characters of a word through windows and highways, words through two LSTM layers (Kim et al. 2016)."""

    def __init__(self, characters=90, dim=25, kernels=100, units=64):
        super().__init__()
        self.characters = nn.Embedding(characters, dim)
        self.windows = nn.Conv1d(dim, kernels, 6)
        self.highways = nn.ModuleList(nn.ModuleList(nn.Linear(kernels, kernels) for _ in "tg") for _ in range(2))
        self.lstm = nn.LSTM(kernels, units, 2, dropout=0.5)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(units, 4)

    def forward(self, x):
        time, batch, width = x.shape
        x = self.characters(x.reshape(time * batch, width)).transpose(1, 2)
        x = torch.tanh(self.windows(x).amax(2))
        for transform, gate in self.highways:
            g = torch.sigmoid(gate(x) - 2)
            x = g * F.relu(transform(x)) + (1 - g) * x
        h = self.lstm(x.reshape(time, batch, -1))[0][-1]
        return self.head(self.dropout(h))


def transformer():
    layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, activation="gelu", batch_first=True)
    model = nn.Sequential(nn.Embedding(5000, 128), nn.TransformerEncoder(layer, 3, enable_nested_tensor=False))
    head = nn.Linear(128, 2)
    opt = torch.optim.Adam([*model.parameters(), *head.parameters()])
    x, y = torch.randint(0, 5000, (32, 64)), torch.randint(0, 2, (32,))

    def step():
        opt.zero_grad()
        F.cross_entropy(head(model(x)[:, 0]), y).backward()
        opt.step()

    return step


class BiLstm(nn.Module):
    """Bidirectional LSTM, additive attention over its states, logits."""

    def __init__(self, units=64):
        super().__init__()
        self.embedding = nn.Embedding(5000, 64)
        self.lstm = nn.LSTM(64, units, bidirectional=True, batch_first=True)
        self.hidden, self.query = nn.Linear(2 * units, 64), nn.Linear(64, 1, bias=False)
        self.head = nn.Linear(2 * units, 2)

    def forward(self, x):
        h = self.lstm(self.embedding(x))[0]
        weights = torch.softmax(self.query(torch.tanh(self.hidden(h))), 1)
        return self.head((weights * h).sum(1))


def swaps(model, logits):
    """A text of 64 tokens with each of 1,000 candidates in one place, in batches of 64 and without gradients."""
    texts = torch.randint(0, 5000, (64,)).repeat(1000, 1)
    texts[:, 20] = torch.randint(0, 5000, (1000,))

    def step():
        with torch.inference_mode():
            for batch in texts.split(64):
                logits(model, batch)

    return step


def swaps_of_transformer():
    layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, activation="gelu", batch_first=True)
    body = nn.Sequential(nn.Embedding(5000, 128), nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)).eval()
    head = nn.Linear(128, 2)
    return swaps(body, lambda body, x: head(body(x)[:, 0]))


class Seq2seq(nn.Module):
    """Bidirectional LSTM encoder, Bahdanau attention, LSTM decoder fed [token, context]."""

    def __init__(self, dim, units, attention, symbols=80):
        super().__init__()
        self.table, self.target = nn.Embedding(symbols, dim), nn.Embedding(symbols, dim)
        self.encoder = nn.LSTM(dim, units, bidirectional=True)
        self.keys, self.query = nn.Linear(2 * units, attention, bias=False), nn.Linear(units, attention)
        self.score = nn.Linear(attention, 1, bias=False)
        self.cell = nn.LSTMCell(dim + 2 * units, units)
        self.head = nn.Linear(3 * units, symbols)
        self.units = units

    def forward(self, source, target):
        memory, (h, c) = self.encoder(self.table(source))
        keys, h, c, outs = self.keys(memory), h[0], c[0], []
        context = torch.zeros(source.shape[1], 2 * self.units)
        for y in self.target(target):
            h, c = self.cell(torch.cat([y, context], 1), (h, c))
            weights = torch.softmax(self.score(torch.tanh(keys + self.query(h)))[..., 0], 0)
            context = (weights[..., None] * memory).sum(0)
            outs.append(torch.cat([h, context], 1))
        return self.head(torch.stack(outs))


def seq2seq(time, batch, sizes, clip=None):
    model = Seq2seq(*sizes)
    opt = torch.optim.Adam(model.parameters())
    x, y = torch.randint(0, 80, (time, batch)), torch.randint(0, 80, (time, batch))

    def step():
        opt.zero_grad()
        logits = model(x, y)
        (F.cross_entropy(logits.view(-1, 80), y.view(-1), reduction="sum") / batch).backward()
        if clip:
            nn.utils.clip_grad_value_(model.parameters(), clip)
        opt.step()

    return step


def steps(cell, dim, units, classes):
    """A hundred steps of one sequence: new state, logits, gradient of one logit for that step's input."""
    head, xs = nn.Linear(units, classes), torch.randn(100, 1, dim)
    for w in [*cell.parameters(), *head.parameters()]:
        w.requires_grad_(False)

    def run():
        h = torch.zeros(1, units)
        for x in xs:
            leaf = x.clone().requires_grad_(True)
            new = cell(leaf, h)
            torch.autograd.grad(head(new)[0, 0], leaf)
            h = new.detach()

    return run


def product():
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    return lambda: a @ b


WORKLOADS = {
    "W1": lambda: lstm(24),
    "W1b": lambda: lstm(256),
    "W2": language_model,
    "W3x1": lambda: input_gradient(1),
    "W3x64": lambda: input_gradient(64),
    "W4": character_convolution,
    "GRU": lambda: training(Classifier(nn.GRU(9, 50), 50, 6, 50), torch.randn(128, 64, 9), 6, 64),
    "RNN": lambda: training(Classifier(nn.RNN(28, 56), 56, 10), torch.randn(28, 128, 28), 10, 128),
    "char-cnn": lambda: training(CharCnn(), torch.randint(0, 90, (80, 64, 20)), 4, 64),
    "transformer": transformer,
    "swap-trafo": swaps_of_transformer,
    "swap-bilstm": lambda: swaps(BiLstm().eval(), lambda model, x: model(x)),
    "seq2seq": lambda: seq2seq(30, 32, (32, 64, 64)),
    "speller": lambda: seq2seq(40, 64, (64, 128, 64), clip=5.0),
    "step-GRU2": lambda: steps(nn.GRUCell(1, 2), 1, 2, 2),
    "step-RNN56": lambda: steps(nn.RNNCell(28, 56), 28, 56, 10),
    "step-GRU50": lambda: steps(nn.GRUCell(9, 50), 9, 50, 6),
    "GEMM": product,
}

ready = {}
print("torch", torch.__version__, flush=True)
for line in sys.stdin:
    name, repeats = line.split()
    if name not in ready:
        ready[name] = WORKLOADS[name]()
        for _ in range(3):
            ready[name]()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(int(repeats)):
        ready[name]()
    n = int(repeats)
    print((time.perf_counter() - wall) / n, (time.process_time() - cpu) / n, flush=True)
