"""The attacks of benches/online in PyTorch, written straightforwardly: autograd a step.

    side.py rnn|gru gradient-sign|dynamic|fixed-point UNITS INPUTS CLASSES BATCH

Prints sequences x steps a second, the median of rounds.
"""

import statistics
import sys
import time

import torch

ALPHA, STEPS, TOLERANCE, ITERATIONS = 0.15, 100, 1e-5, 30
# Gauss and Legendre's four points on [0, 1].
POINTS = [
    (0.06943184420297371, 0.17392742256872693),
    (0.33000947820757187, 0.32607257743127307),
    (0.6699905217924281, 0.32607257743127307),
    (0.9305681557970262, 0.17392742256872693),
]


class Net(torch.nn.Module):
    def __init__(self, cell, units, inputs, classes):
        super().__init__()
        kind = torch.nn.RNNCell if cell == "rnn" else torch.nn.GRUCell
        self.cell = kind(inputs, units)
        self.head = torch.nn.Linear(units, classes)


def ascent(net, h):
    h = h.detach().requires_grad_(True)
    v = -torch.log_softmax(net.head(h), 1)[:, 0].sum()
    (g,) = torch.autograd.grad(v, h)
    return g / g.norm(dim=1, keepdim=True)


def pull(net, h, x, v):
    x = x.detach().requires_grad_(True)
    (g,) = torch.autograd.grad(net.cell(x, h), x, v)
    return g


def mean_pull(net, h, x, d, v):
    return sum(w * pull(net, h, x + p * d, v) for p, w in POINTS)


def attack(net, name, signal, units):
    h = torch.zeros(signal.shape[1], units)
    d = torch.zeros_like(signal[0])
    for x in signal:
        v = ascent(net, h)
        if name == "gradient-sign":
            d = ALPHA * pull(net, h, x, v).sign()
        elif name == "fixed-point":
            for _ in range(ITERATIONS):
                new = ALPHA * mean_pull(net, h, x, d, v)
                moved = (new - d).abs().max()
                d = new
                if moved < TOLERANCE:
                    break
        after = d if name != "dynamic" else ALPHA * mean_pull(net, h, x, d, v)
        with torch.no_grad():
            h = net.cell(x + d, h)
        d = after


def main():
    cell, name = sys.argv[1:3]
    units, inputs, classes, batch = map(int, sys.argv[3:7])
    torch.manual_seed(1)
    torch.set_flush_denormal(True)
    torch.set_num_threads(2)
    net = Net(cell, units, inputs, classes)
    signal = torch.sin(torch.arange(STEPS * batch * inputs).reshape(STEPS, batch, inputs) * 0.13)
    attack(net, name, signal, units)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        attack(net, name, signal, units)
        times.append(time.perf_counter() - start)
    print(batch * STEPS / statistics.median(times))


main()
