"""Lets `ablate` attack a model that lives in Python.

    import ablate

    ablate.serve(predict=lambda texts: model.predict_proba(texts))

A PyTorch model under attacks that follow gradients:

    ablate.serve(predict=…, gradient=…, vectors=model.embedding.weight)

`predict` gets a list of texts, or a list of lists of token ids if the stage says reads = "tokens", and returns the
probabilities of the classes: one row for each item, as lists or as a NumPy array, or as a tensor of PyTorch.
`gradient` gets lists of token ids and a class for each, and returns for each item the gradient of the logarithm of that
class's probability with respect to the vectors of its tokens: as many rows as tokens. `vectors` are those of all tokens
of the vocabulary, in the order of their ids.
`ablate` puts this file beside the program: there is nothing to install. It needs only Python 3.8; with pyarrow, items
and answers travel as Arrow tables, which is faster.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import traceback
from typing import Any, BinaryIO, Callable, List, Optional, Sequence, Tuple, Union

try:
    import pyarrow
    import pyarrow.ipc
except ImportError:
    pyarrow = None

PROTOCOL = "model/1"

# Standard output is for answers alone, from here on: whatever the program prints goes to standard error, also what it
# printed before and Python still holds.
_ANSWERS = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)
# Requests are read here alone: a program that reads its standard input finds it empty.
_REQUESTS = os.fdopen(os.dup(0), "rb")
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
sys.stdout.reconfigure(line_buffering=True)

Items = Union[List[str], List[List[int]]]
Predict = Callable[[Items], Sequence[Sequence[float]]]
Gradient = Callable[[List[List[int]], List[int]], Sequence[Sequence[Sequence[float]]]]


def serve(predict: Predict, gradient: Optional[Gradient] = None, vectors: Any = None) -> None:
    """Answers until there are no more requests. Call it last: it returns when the attack is over."""
    if (gradient is None) != (vectors is None):
        raise ValueError("gradient and vectors go together")
    answers = _ANSWERS
    requests = _REQUESTS
    form = "json" if pyarrow is None else "arrow"
    _send(answers, {"ablate": PROTOCOL, "format": form, "gradients": gradient is not None})
    while True:
        frame = _receive(requests)
        if frame is None:
            return
        try:
            columns = _answer(*frame, predict, gradient, vectors)
            if pyarrow is None:
                _send(answers, columns)
            else:
                _send(answers, {}, _table(columns))
        except Exception:
            # What went wrong belongs into the message of the failed stage.
            _send(answers, {"error": traceback.format_exc()})


def _answer(header: dict, body: bytes, predict: Predict, gradient: Optional[Gradient], vectors: Any) -> dict:
    if header["ask"] == "vectors":
        return {"vectors": _lists(vectors)}
    asked = _columns(header, body)
    items = asked["items"]
    columns = {"probabilities": _lists(predict(items))}
    if header["ask"] == "gradients":
        found = gradient(items, asked["classes"])
        columns["gradients"] = [[number for row in _lists(item) for number in row] for item in found]
    return columns


def _columns(header: dict, body: bytes) -> dict:
    if pyarrow is None or not body:
        return header
    return pyarrow.ipc.open_stream(body).read_all().to_pydict()


def _lists(rows: Any) -> List[List[float]]:
    if rows is None:
        raise ValueError("nothing was returned: return a row of numbers for each item")
    if hasattr(rows, "detach"):
        rows = rows.detach().cpu()
    if hasattr(rows, "tolist"):
        return rows.tolist()
    return [[float(number) for number in row] for row in rows]


def _table(columns: dict) -> bytes:
    lists = pyarrow.list_(pyarrow.float64())
    table = pyarrow.table({name: pyarrow.array(rows, type=lists) for name, rows in columns.items()})
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _send(to: BinaryIO, header: dict, body: bytes = b"") -> None:
    text = json.dumps(header, allow_nan=False).encode()
    to.write(struct.pack("<IQ", len(text), len(body)) + text + body)
    to.flush()


def _receive(source: BinaryIO) -> Optional[Tuple[dict, bytes]]:
    lengths = source.read(12)
    if len(lengths) < 12:
        return None
    header, body = struct.unpack("<IQ", lengths)
    return json.loads(source.read(header)), source.read(body)
