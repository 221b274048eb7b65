"""Lets `ablate` attack a model that lives in Python.

    import ablate

    ablate.serve(predict=lambda texts: model.predict_proba(texts))

`predict` gets a list of texts, or a list of lists of token ids if the stage says reads = "tokens", and returns the
probabilities of the classes: one row for each item, as lists or as a NumPy array, or as a tensor of PyTorch.
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

Items = Union[List[str], List[List[int]]]
Predict = Callable[[Items], Sequence[Sequence[float]]]


def serve(predict: Predict) -> None:
    """Answers until there are no more requests. Call it last: it returns when the attack is over."""
    answers = _channel()
    requests = sys.stdin.buffer
    columns = pyarrow is not None
    _send(answers, {"ablate": PROTOCOL, "format": "arrow" if columns else "json"})
    while True:
        frame = _receive(requests)
        if frame is None:
            return
        header, body = frame
        try:
            rows = _rows(predict(_items(header, body)))
            if columns:
                _send(answers, {"answer": "probabilities"}, _table(rows))
            else:
                _send(answers, {"answer": "probabilities", "probabilities": rows})
        except Exception:
            # What went wrong belongs into the message of the failed stage.
            _send(answers, {"error": traceback.format_exc()})


def _channel() -> BinaryIO:
    """Takes standard output for the answers alone: what the program prints goes to standard error."""
    sys.stdout.flush()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _items(header: dict, body: bytes) -> Items:
    if pyarrow is None or not body:
        return header["items"]
    return pyarrow.ipc.open_stream(body).read_all().column("items").to_pylist()


def _rows(probabilities: Any) -> List[List[float]]:
    if hasattr(probabilities, "detach"):
        probabilities = probabilities.detach().cpu()
    if hasattr(probabilities, "tolist"):
        return probabilities.tolist()
    return [[float(p) for p in row] for row in probabilities]


def _table(rows: List[List[float]]) -> bytes:
    column = pyarrow.array(rows, type=pyarrow.list_(pyarrow.float64()))
    table = pyarrow.table({"probabilities": column})
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _send(to: BinaryIO, header: dict, body: bytes = b"") -> None:
    text = json.dumps(header).encode()
    to.write(struct.pack("<IQ", len(text), len(body)) + text + body)
    to.flush()


def _receive(source: BinaryIO) -> Optional[Tuple[dict, bytes]]:
    lengths = source.read(12)
    if len(lengths) < 12:
        return None
    header, body = struct.unpack("<IQ", lengths)
    return json.loads(source.read(header)), source.read(body)
