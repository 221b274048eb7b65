"""The peers' side of `cargo bench --bench text`: one job a process, its figures as one line of JSON.

Needs `pip install tokenizers scikit-learn pandas gensim` in some virtual environment. Imports
are not part of a figure, and neither is reading the reviews out of their archive, unless the
job says so.
"""

import json
import os
import sys
import tarfile
import time

os.environ.setdefault("RAYON_NUM_THREADS", "2")


def timed(part, made=lambda result: result):
    wall, cpu = time.perf_counter(), time.process_time()
    result = part()
    figures = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    print(json.dumps({**figures, "made": made(result)}))


def reviews(path):
    with tarfile.open(path) as archive:
        return [
            archive.extractfile(member).read().decode()
            for member in archive
            if member.isfile() and member.name.endswith(".txt")
        ]


def word_level(texts):
    """A vocabulary of all words, so that both sides look every word up."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    seen = {word for text in texts for word in text.lower().split()}
    vocabulary = {word: number for number, word in enumerate(["[UNK]", *sorted(seen)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer


def tokenizers_lookup(path):
    texts = reviews(path)
    tokenizer = word_level(texts)

    def part():
        return {"tokens": sum(len(encoded.ids) for encoded in tokenizer.encode_batch_fast(texts))}

    timed(part)


def count_vectorizer(path):
    from sklearn.feature_extraction.text import CountVectorizer

    texts = reviews(path)
    timed(lambda: {"tokens": int(CountVectorizer().fit_transform(texts).sum())})


def read_tar(path):
    timed(lambda: {"rows": len(reviews(path))})


def read_csv(path):
    import pandas

    def part():
        table = pandas.read_csv(path, sep=" ", header=None, quoting=3, na_filter=False)
        return {"rows": len(table)}

    timed(part)


def word2vec(path, dim, epochs):
    from gensim.models import Word2Vec

    sentences = [line.split() for line in open(path, encoding="utf-8")]
    settings = dict(sg=1, hs=0, negative=5, window=5, sample=1e-3, alpha=0.025, min_alpha=0.0)

    def part():
        return Word2Vec(
            sentences, vector_size=int(dim), epochs=int(epochs), workers=2, min_count=1, **settings
        )

    timed(part, lambda model: {"hits": hits(model.wv)})


def hits(vectors):
    """How many words of the groups have another of their group among their ten nearest."""
    found = 0
    with open(os.path.join(os.path.dirname(__file__), "groups.txt"), encoding="utf-8") as groups:
        for group in (line.split() for line in groups):
            for word in (word for word in group if word in vectors):
                near = {other for other, _ in vectors.most_similar(word, topn=10)}
                found += any(other in near for other in group)
    return found


JOBS = {
    "tokenizers": tokenizers_lookup,
    "count-vectorizer": count_vectorizer,
    "tar": read_tar,
    "read-csv": read_csv,
    "word2vec": word2vec,
}

JOBS[sys.argv[1]](*sys.argv[2:])
