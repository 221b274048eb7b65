"""Lets `ablate` attack a model that lives in Python, and lets an attack in Python attack a model of `ablate`.

    import ablate

    ablate.serve(predict=lambda texts: model.predict_proba(texts))

A PyTorch model under attacks that follow gradients:

    ablate.serve(predict=…, gradient=…, vectors=model.embedding.weight)

`predict` gets a list of texts, or a list of lists of token ids if the stage says reads = "tokens", and returns the
probabilities of the classes: one row for each item, as lists or as a NumPy array, or as a tensor of PyTorch.
`gradient` gets lists of token ids and a class for each, and returns for each item the gradient of the logarithm of that
class's probability with respect to the vectors of its tokens: as many rows as tokens. `vectors` are those of all tokens
of the vocabulary, in the order of their ids. `attention` gets lists of token ids, and returns for each item how much the
model attends to each of its tokens: weights that add up to 1. `states` gets lists of token ids, and returns for each item
the states of its recurrent layer, or a list of those of its layers: a dictionary with the hidden states `h` and, where
there are any, the cell states `c` and the gates `i`, `f`, `g` and `o`, each with as many rows as tokens.

An attack:

    ablate.attack(lambda item, predict: …)

is called for one item after the other, may ask `predict` about texts, and returns an adversarial one: a text, a list of
words or of token ids, or None if it has found none.

`ablate` puts this file beside the program: there is nothing to install. It needs only Python 3.8; with pyarrow, items
and answers travel as Arrow tables, which is faster.
"""

from __future__ import annotations

import json
import math
import os
import random
import struct
import sys
import traceback
from array import array
from typing import Any, BinaryIO, Callable, List, Optional, Sequence, Tuple, Union

try:
    import pyarrow
    import pyarrow.ipc
except ImportError:
    pyarrow = None

PROTOCOL = "model/1"
ATTACK_PROTOCOL = "attack/1"

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
Attention = Callable[[List[List[int]]], Sequence[Sequence[float]]]
States = Callable[[List[List[int]]], Sequence[Any]]
Row = Union[str, Sequence[str], Sequence[int]]

# For attacks: the words of the model by their ids, and how many classes it predicts.
vocabulary: List[str] = []
classes = 0


def serve(
    predict: Predict,
    gradient: Optional[Gradient] = None,
    vectors: Any = None,
    attention: Optional[Attention] = None,
    states: Optional[States] = None,
) -> None:
    """Answers until there are no more requests. Call it last: it returns when the attack is over."""
    if (gradient is None) != (vectors is None):
        raise ValueError("gradient and vectors go together")
    answers = _ANSWERS
    requests = _REQUESTS
    form = "json" if pyarrow is None else "arrow"
    more = {"gradients": gradient is not None, "attention": attention is not None, "states": states is not None}
    _send(answers, {"ablate": PROTOCOL, "format": form, **more})
    while True:
        frame = _receive(requests)
        if frame is None:
            return
        try:
            more, columns = _answer(*frame, predict, gradient, vectors, attention, states)
            if pyarrow is None:
                _send(answers, {**more, **columns})
            else:
                _send(answers, more, _table(columns))
        except Exception:
            # What went wrong belongs into the message of the failed stage.
            _send(answers, {"error": traceback.format_exc()})


class OutOfQueries(Exception):
    """The model may not be asked that often. An attack that does not catch it leaves its item as it is."""


class Item:
    """A row to be attacked: the model gets it right."""

    def __init__(self, place: int, sent: dict) -> None:
        self.place = place
        self.id: str = sent["id"]
        # Its words, or with reads = "tokens" their ids.
        self.words: List[str] = sent.get("words", [])
        self.tokens: List[int] = sent.get("tokens", [])
        self.label: int = sent["label"]
        # Of all classes, as the model answers for the row as it is.
        self.probabilities: List[float] = sent["probabilities"]
        # How many more texts the model may be asked about; None for any number.
        self.queries_left: Optional[int] = sent["queries_left"]
        # The same in every execution. `random` is drawn from it, and so are those of the modules that are loaded.
        self.seed: int = sent["seed"]
        self.random = random.Random(self.seed)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def attack(function: Callable[..., Any], batch: Optional[int] = None) -> None:
    """Attacks until there are no more items. Call it last: it returns when the attack is over.

    `function(item, predict)` returns an adversarial row, or None. `predict(texts)` returns the probabilities of each.
    With `batch`, `function(items, predict)` is given that many items at once and returns a row for each of them;
    `predict(pairs)` is asked about pairs of an item and a text.
    """
    global vocabulary, classes
    _send(_ANSWERS, {"ablate": ATTACK_PROTOCOL, "batch": 1 if batch is None else batch})
    while True:
        frame = _receive(_REQUESTS)
        if frame is None:
            return
        header = frame[0]
        if header["ask"] == "start":
            vocabulary, classes = header["vocabulary"], header["classes"]
            _send(_ANSWERS, {"answer": "ready"})
            continue
        try:
            items = [Item(place, sent) for place, sent in enumerate(header["items"])]
            found = _attacked(function, items, batch is not None)
            if len(found) != len(items):
                raise ValueError(f"{len(found)} rows were returned for {len(items)} items")
            rows = [{"id": item.id, "row": _row(row)} for item, row in zip(items, found)]
            _send(_ANSWERS, {"answer": "rows", "rows": rows})
        except Exception:
            # What went wrong belongs into the message of the failed stage.
            _send(_ANSWERS, {"error": traceback.format_exc()})


def _attacked(function: Callable[..., Any], items: List[Item], together: bool) -> List[Any]:
    _seed(items[0].seed)
    try:
        if together:
            found = function(items, _ask)
            return [None] * len(items) if found is None else list(found)
        return [function(items[0], lambda texts: _ask([(items[0], text) for text in _several(texts)]))]
    except OutOfQueries:
        return [None] * len(items)


def _seed(seed: int) -> None:
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def _several(texts: Any) -> List[Row]:
    if isinstance(texts, str):
        raise TypeError("predict gets a list of texts: predict([text])")
    return list(texts)


def _ask(pairs: Any) -> List[List[float]]:
    pairs = list(pairs)
    rows = [_row(text) for _, text in pairs]
    _send(_ANSWERS, {"ask": "probabilities", "of": [item.place for item, _ in pairs], "rows": rows})
    frame = _receive(_REQUESTS)
    if frame is None:
        raise EOFError("ablate has ended")
    header = frame[0]
    if "refused" in header:
        raise OutOfQueries(header["refused"])
    if "error" in header:
        raise ValueError(header["error"])
    for item, _ in pairs:
        if item.queries_left is not None:
            item.queries_left -= 1
    return header["probabilities"]


def _row(row: Any) -> Optional[Union[str, list]]:
    if row is None or isinstance(row, str):
        return row
    if hasattr(row, "tolist"):
        return row.tolist()
    if not hasattr(row, "__iter__"):
        raise TypeError(f"return a text, a list of words or of token ids, or None, not {row!r}")
    # Integers of NumPy are not integers of JSON.
    return [token if isinstance(token, str) else int(token) for token in row]


def _answer(
    header: dict,
    body: bytes,
    predict: Predict,
    gradient: Optional[Gradient],
    vectors: Any,
    attention: Optional[Attention],
    states: Optional[States],
) -> Tuple[dict, dict]:
    """What the header of the answer has beside its columns, and these."""
    if header["ask"] == "vectors":
        return {}, {"vectors": _lists(vectors)}
    asked = _columns(header, body)
    items = asked["items"]
    if header["ask"] == "attention":
        return {}, {"attention": _lists(attention(items))}
    if header["ask"] == "states":
        return _layers(states(items))
    columns = {"probabilities": _lists(predict(items))}
    if header["ask"] == "gradients":
        found = gradient(items, asked["classes"])
        columns["gradients"] = [[number for row in _lists(item) for number in row] for item in found]
    return {}, columns


def _layers(found: Any) -> Tuple[dict, dict]:
    """The layers, and of each item all numbers: layer after layer, state after state, token after token."""
    described, rows = None, []
    for item in found:
        layers = [item] if isinstance(item, dict) else list(item)
        if not all(isinstance(layer, dict) for layer in layers):
            raise TypeError('states returns {"h": …, "c": …} for each item, or a list of these, one for each layer')
        lists = [{name: _lists(state) for name, state in layer.items()} for layer in layers]
        numbers, shapes = [], []
        for layer in lists:
            units = {len(row) for state in layer.values() for row in state}
            if len(units) > 1:
                raise ValueError(f"states of one layer have {sorted(units)} units: there is one number of units in a layer")
            shapes.append({"parts": list(layer), "units": max(units, default=0)})
            numbers += [number for state in layer.values() for row in state for number in row]
        # An item without tokens has no numbers that would tell how many units there are.
        if described is None or any(layer["units"] == 0 for layer in described):
            described = shapes
        elif shapes != described and numbers:
            raise ValueError(f"states have the layers {shapes} for one item, and {described} for another")
        rows.append(numbers)
    return {"layers": described or []}, {"states": rows}


def _columns(header: dict, body: bytes) -> dict:
    if pyarrow is None or not body:
        return header
    return pyarrow.ipc.open_stream(body).read_all().to_pydict()


def _lists(rows: Any) -> List[List[float]]:
    if rows is None:
        raise ValueError("nothing was returned: return a row of numbers for each item")
    if hasattr(rows, "detach"):
        rows = rows.detach().cpu()
    rows = rows.tolist() if hasattr(rows, "tolist") else list(rows)
    for row in rows:
        if not hasattr(row, "__iter__"):
            raise ValueError(f"return a row of numbers for each item, as predict_proba does, not {row!r}")
    return [row if isinstance(row, list) else [float(number) for number in row] for row in rows]


def _table(columns: dict) -> bytes:
    batch = pyarrow.RecordBatch.from_arrays([_column(rows) for rows in columns.values()], names=list(columns))
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def _column(rows: List[List[float]]) -> Any:
    """Lists of numbers, from buffers: pyarrow.array would load pandas, which can take longer than an attack."""
    numbers, ends = array("d"), array("i", [0])
    for row in rows:
        numbers.extend(row)
        ends.append(len(numbers))
    values = pyarrow.Array.from_buffers(pyarrow.float64(), len(numbers), [None, pyarrow.py_buffer(numbers)])
    lists = pyarrow.list_(pyarrow.float64())
    return pyarrow.Array.from_buffers(lists, len(rows), [None, pyarrow.py_buffer(ends)], children=[values])


def _send(to: BinaryIO, header: dict, body: bytes = b"") -> None:
    try:
        text = json.dumps(header, allow_nan=False).encode()
    except ValueError:
        # JSON has no numbers that are not finite, and does not say where one is.
        raise ValueError(_not_finite(header)) from None
    to.write(struct.pack("<IQ", len(text), len(body)) + text + body)
    to.flush()


def _not_finite(header: dict) -> str:
    for name, rows in header.items():
        for place, row in enumerate(rows if isinstance(rows, list) else []):
            for number in row if isinstance(row, list) else []:
                if isinstance(number, float) and not math.isfinite(number):
                    return f"row {place} of {name} has a number that is not finite: {number}"
    return "an answer has a number that is not finite"


def _receive(source: BinaryIO) -> Optional[Tuple[dict, bytes]]:
    lengths = source.read(12)
    if len(lengths) < 12:
        return None
    header, body = struct.unpack("<IQ", lengths)
    return json.loads(source.read(header)), source.read(body)
