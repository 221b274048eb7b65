"""A GRU in PyTorch with random weights, served to `ablate`; with ALONE it asks itself about the texts of a file."""

import json
import os
import select
import signal
import time

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
units = int(os.environ["SIZE"])
embedding = torch.nn.Embedding(5000, units)
gru = torch.nn.GRU(units, units, batch_first=True)
head = torch.nn.Linear(units, 2)
told = {}


def answered(texts):
    with torch.no_grad():
        rows = [[hash(word) % 5000 for word in text.split()] or [0] for text in texts]
        longest = max(map(len, rows))
        states, _ = gru(embedding(torch.tensor([row + [0] * (longest - len(row)) for row in rows])))
        ends = torch.tensor([len(row) - 1 for row in rows])
        return torch.softmax(head(states[torch.arange(len(rows)), ends]), dim=1)


def predict(texts):
    """Answers, and writes down when and for how long, by the clock and by CPU time."""
    begun = time.perf_counter(), time.process_time()
    if not told:
        told.update(first=begun, busy=[0.0, 0.0], items=0, requests=0, ahead=0)
    answer = answered(texts)
    ended = time.perf_counter(), time.process_time()
    told["busy"] = [busy + b - a for busy, a, b in zip(told["busy"], begun, ended)]
    told.update(last=ended, items=told["items"] + len(texts), requests=told["requests"] + 1)
    if "ALONE" not in os.environ:
        told["ahead"] += bool(select.select([ablate._REQUESTS.fileno()], [], [], 0)[0])
    return answer


def tell(*_):
    print("told " + json.dumps(told), flush=True)
    os._exit(0)


# Whatever PyTorch does once is done before, on both sides.
for _ in range(3):
    answered(["a word of a text"] * 64)

if "ALONE" in os.environ:
    texts, batch = json.load(open(os.environ["ALONE"])), int(os.environ["BATCH"])
    for start in range(0, len(texts), batch):
        predict(texts[start : start + batch])
    tell()

import ablate

# When it is not needed any more it is asked to end.
signal.signal(signal.SIGTERM, tell)
ablate.serve(predict=predict)
tell()
