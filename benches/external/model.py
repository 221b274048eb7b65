"""A GRU in PyTorch with random weights, served to `ablate`; with ALONE it asks itself about the texts of a file."""

import json
import os
import signal
import time

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
units = int(os.environ["SIZE"])
embedding = torch.nn.Embedding(5000, units)
gru = torch.nn.GRU(units, units, batch_first=True)
head = torch.nn.Linear(units, 2)
told = {"first": None, "last": None, "items": 0, "busy": 0.0}


def predict(texts):
    begun = time.perf_counter()
    told["first"] = told["first"] or begun
    with torch.no_grad():
        rows = [[hash(word) % 5000 for word in text.split()] or [0] for text in texts]
        longest = max(map(len, rows))
        states, _ = gru(embedding(torch.tensor([row + [0] * (longest - len(row)) for row in rows])))
        answer = torch.softmax(head(states[:, -1]), dim=1)
    told["last"] = time.perf_counter()
    told["items"] += len(texts)
    told["busy"] += told["last"] - begun
    return answer


def tell(*_):
    print("told " + json.dumps(told), flush=True)
    os._exit(0)


if "ALONE" in os.environ:
    texts, batch = json.load(open(os.environ["ALONE"])), int(os.environ["BATCH"])
    predict(texts[:8])
    told.update(first=None, items=0, busy=0.0)
    for start in range(0, len(texts), batch):
        predict(texts[start : start + batch])
    tell()

import ablate

# When it is not needed any more it is asked to end.
signal.signal(signal.SIGTERM, tell)
ablate.serve(predict=predict)
tell()
