"""Serves a tokenizer and a transformer in Hugging Face's style, with random weights and NumPy alone.

With the package `transformers` the last lines are the same, with

    tokenizer = AutoTokenizer.from_pretrained("folder")
    model = AutoModelForSequenceClassification.from_pretrained("folder").eval()

and the folder among `files`: programs have no network.
"""

import numpy

import ablate


class Tokenizer:
    """Words by their hashes, so that there is no vocabulary to load."""

    def __init__(self, words: int = 2000) -> None:
        self.words = words

    def __call__(self, texts, padding=True):
        # The same in every process: PYTHONHASHSEED is 0.
        rows = [[1] + [2 + hash(word) % (self.words - 2) for word in text.lower().split()] for text in texts]
        longest = max(len(row) for row in rows)
        ids = numpy.array([row + [0] * (longest - len(row)) for row in rows])
        return {"input_ids": ids, "attention_mask": (ids != 0).astype(float)}


class Classifier:
    """One block: attention of two heads and a feed-forward layer, then a head on the first token."""

    def __init__(self, words: int = 2000, dim: int = 32, classes: int = 2, seed: int = 0) -> None:
        draw = numpy.random.default_rng(seed)
        weight = lambda *shape: draw.normal(size=shape) / numpy.sqrt(shape[0])
        self.embedding, self.heads = weight(words, dim) * numpy.sqrt(words / dim), 2
        self.query, self.key, self.value, self.out = (weight(dim, dim) for _ in range(4))
        self.up, self.down, self.head = weight(dim, 4 * dim), weight(4 * dim, dim), weight(dim, classes)

    def __call__(self, input_ids, attention_mask):
        x = self.embedding[input_ids]
        batch, length, dim = x.shape
        split = lambda y: y.reshape(batch, length, self.heads, -1).transpose(0, 2, 1, 3)
        q, k, v = split(x @ self.query), split(x @ self.key), split(x @ self.value)
        scores = q @ k.transpose(0, 1, 3, 2) / numpy.sqrt(dim // self.heads)
        scores += (attention_mask[:, None, None, :] - 1) * 1e9
        mixed = (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(batch, length, dim)
        x = normalised(x + mixed @ self.out)
        x = normalised(x + numpy.maximum(x @ self.up, 0) @ self.down)
        return x[:, 0] @ self.head


def softmax(x):
    e = numpy.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def normalised(x):
    return (x - x.mean(axis=-1, keepdims=True)) / (x.std(axis=-1, keepdims=True) + 1e-5)


tokenizer = Tokenizer()
model = Classifier()


def predict(texts):
    return softmax(model(**tokenizer(texts, padding=True)))


ablate.serve(predict=predict)
