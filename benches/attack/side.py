"""The peers' side of `cargo bench --bench attack`: one job a process, its figures as one line of JSON.

scikit-learn's jobs need `pip install scikit-learn`, PyTorch's `pip install torch`, TextAttack's
`pip install -c constraints.txt textattack==0.3.11`, each in some virtual environment. Imports and reading files are not part of a figure. The files are those that our
side made.
"""

import json
import os
import sys
import time
import warnings

warnings.filterwarnings("ignore")
BATCHES, REPEATS, DIM, UNITS, BATCH, STEPS = (1, 4, 8, 16, 32), 15, 50, 64, 24, 100


def timed(part):
    wall, cpu = time.perf_counter(), time.process_time()
    result = part()
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}, result


def say(figures, made):
    print(json.dumps({**figures, "made": made}))


# NumPy and scikit-learn


def numbers(folder, name):
    import numpy

    kind = numpy.float32 if name.endswith("f32") else numpy.uint32
    return numpy.fromfile(os.path.join(folder, name), kind)


def projection(product):
    """Milliseconds, median and best, of each batch: `product` gives the best rows."""
    times = {batch: [] for batch in BATCHES}

    def part():
        for _ in range(REPEATS):
            for batch in BATCHES:
                start = time.perf_counter()
                rows = product(batch)
                times[batch].append((time.perf_counter() - start) * 1e3)
        return rows

    figures, rows = timed(part)
    made = {str(b): [sorted(t)[REPEATS // 2], min(t)] for b, t in times.items()}
    say(figures, {**made, "rows": [int(row) for row in rows]})


def numpy_best(folder):
    table = numbers(folder, "vectors.f32").reshape(-1, DIM)
    directions = numbers(folder, "directions.f32").reshape(-1, DIM)
    projection(lambda batch: (directions[:batch] @ table.T).argmax(1))


def sparse(folder, binary):
    """The reviews of both splits as sparse matrices, their labels, and the seconds that it took."""
    from scipy.sparse import csr_matrix

    ids, ends = numbers(folder, "ids.u32").astype("int32"), numbers(folder, "ends.u32").astype("int32")
    labels, train = numbers(folder, "labels.u32").astype("int64"), numbers(folder, "train.u32") == 1
    words = len(numbers(folder, "vectors.f32")) // DIM
    starts, lengths = ends[:-1], ends[1:] - ends[:-1]

    def part(rows):
        import numpy

        texts = numpy.concatenate([ids[s : s + n] for s, n in zip(starts[rows], lengths[rows])])
        bounds = numpy.concatenate([[0], numpy.cumsum(lengths[rows])])
        x = csr_matrix((numpy.ones(len(texts)), texts, bounds), shape=(len(bounds) - 1, words))
        x.sum_duplicates()
        if binary:
            x.data[:] = 1.0
        return x

    figures, x = timed(lambda: part(train))
    return x, labels[train], part(~train), labels[~train], figures["wall"]


def classifier(folder, models, binary, warm=False):
    x, y, x_test, y_test, features = sparse(folder, binary)
    first = timed(lambda: models[0].fit(x, y))[0]["wall"] if warm else None
    figures, _ = timed(lambda: [model.fit(x, y) for model in models])
    accuracies = [float(model.score(x_test, y_test)) for model in models]
    mean = sum(accuracies) / len(accuracies)
    made = {"features": features, "first": first}
    say(figures, {**made, "accuracy": mean, "accuracies": accuracies})


def svm(folder):
    from sklearn.linear_model import SGDClassifier

    settings = dict(loss="hinge", alpha=1e-4, max_iter=20, tol=None, shuffle=True)
    classifier(folder, [SGDClassifier(random_state=seed, **settings) for seed in range(1, 6)], True)


def bayes(folder):
    from sklearn.naive_bayes import MultinomialNB

    classifier(folder, [MultinomialNB(fit_prior=False)] * 20, False, warm=True)


# PyTorch


def torch_of():
    import torch

    torch.set_num_threads(int(os.environ.get("THREADS", "2")))
    # Back-propagation through 250 steps underflows; without this PyTorch takes ten times as long.
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    return torch


def tensor(torch, folder, name):
    path = os.path.join(folder, name)
    kind = torch.float32 if name.endswith("f32") else torch.int32
    return torch.from_file(path, size=os.path.getsize(path) // 4, dtype=kind).clone()


def torch_best(folder):
    torch = torch_of()
    table = tensor(torch, folder, "vectors.f32").view(-1, DIM)
    directions = tensor(torch, folder, "directions.f32").view(-1, DIM)
    projection(lambda batch: (directions[:batch] @ table.T).argmax(1))


def reviews(torch, folder):
    ids, ends = tensor(torch, folder, "ids.u32").long(), tensor(torch, folder, "ends.u32").tolist()
    labels = tensor(torch, folder, "labels.u32").long()
    return [ids[a:b] for a, b in zip(ends, ends[1:])], labels


def classifier_of(torch, folder, form):
    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            table = tensor(torch, folder, "vectors.f32").view(-1, DIM)
            self.table = torch.nn.Embedding.from_pretrained(table, freeze=True)
            self.rnn, self.head = torch.nn.LSTM(DIM, UNITS), torch.nn.Linear(UNITS, 2)
            self.dropout = torch.nn.Dropout(0.25)
            with torch.no_grad():
                # Ours has one bias, and one for the forget gate to begin with.
                self.rnn.bias_ih_l0.zero_()[UNITS : 2 * UNITS] = 1.0
                self.rnn.bias_hh_l0.zero_()

        def vectors(self, x, lengths):
            if form == "packed":
                x = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
                return self.rnn(x)[1][0][0]
            h = self.rnn(x)[0]
            return h[lengths - 1, torch.arange(len(lengths))]

        def forward(self, texts, lengths):
            return self.head(self.dropout(self.vectors(self.table(texts), lengths)))

    return Classifier()


def lstm(folder, form):
    torch = torch_of()
    texts, labels = reviews(torch, folder)
    places = tensor(torch, folder, "train.u32").nonzero()[:, 0].tolist()
    model = classifier_of(torch, folder, form)
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    batches = tensor(torch, folder, "batches.u32").view(-1, BATCH).tolist()

    def step(rows):
        rows = [places[row] for row in rows]
        lengths = torch.tensor([len(texts[row]) for row in rows])
        x = torch.nn.utils.rnn.pad_sequence([texts[row] for row in rows])
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x, lengths), labels[rows])
        loss.backward()
        optimiser.step()
        return loss.item()

    for rows in batches[: STEPS // 10]:
        step(rows)
    figures, losses = timed(lambda: [step(rows) for rows in batches[STEPS // 10 :]])
    say(figures, {"loss": sum(losses) / len(losses)})


def victim(torch, folder):
    """The LSTM that our side trained."""
    model = classifier_of(torch, folder, "padded").eval()
    weights = {
        "rnn.weight_ih_l0": tensor(torch, folder, "recurrent.0.0.input.f32").view(DIM, -1).T,
        "rnn.weight_hh_l0": tensor(torch, folder, "recurrent.0.0.recurrent.f32").view(UNITS, -1).T,
        "rnn.bias_ih_l0": tensor(torch, folder, "recurrent.0.0.bias.f32"),
        "head.weight": tensor(torch, folder, "head.weight.f32").view(UNITS, -1).T,
        "head.bias": tensor(torch, folder, "head.bias.f32"),
    }
    model.load_state_dict(weights, strict=False)
    for weight in model.parameters():
        weight.requires_grad_(False)
    return model


def jsma(folder):
    """One review at a time: a gradient of the whole review, then one product with all vectors."""
    torch = torch_of()
    model, (texts, labels) = victim(torch, folder), reviews(torch, folder)
    drawn = tensor(torch, folder, "drawn.u32").tolist()
    table = model.table.weight

    def attack(row):
        tokens, label = texts[row].clone(), int(labels[row])
        lengths, changed, queries = torch.tensor([len(tokens)]), 0, 0
        while True:
            x = table[tokens][:, None].requires_grad_(True)
            z = model.head(model.vectors(x, lengths))[0]
            queries += 1
            if int(z.argmax()) != label or changed == min(35, len(tokens)):
                return changed, queries, int(z.argmax()) != label and changed > 0
            place = len(tokens) - 1 - changed
            direction = -torch.autograd.grad(z[label], x)[0][place, 0].sign()
            scores = table @ direction
            scores[[0, 1, int(tokens[place])]] = -torch.inf
            tokens[place] = scores.argmax()
            changed += 1

    figures, done = timed(lambda: [attack(row) for row in drawn])
    words, queries, successes = zip(*done)
    made = {"items": len(done), "successes": sum(successes), "forward": sum(queries)}
    say(figures, {**made, "backward": sum(words), "words": words})


def hotflip(folder):
    """A beam search over flips, all texts of all documents in one batch: gradients, then the best legal flips."""
    torch = torch_of()
    with open(os.path.join(folder, "characters.json")) as file:
        data = json.load(file)
    names, width = data["characters"], data["width"]
    weight = lambda name: tensor(torch, folder, name + ".f32")
    table = weight("characters").view(len(names), -1)
    dim, kernels = table.shape[1], len(weight("windows.bias"))
    windows = weight("windows.weight").view(-1, dim, kernels).permute(2, 1, 0).contiguous()
    square = lambda name: weight(name).view(kernels, kernels)
    units = len(weight("lstm.0.bias")) // 4
    lstm = torch.nn.LSTM(kernels, units, 2)
    with torch.no_grad():
        for k, inputs in ((0, kernels), (1, units)):
            getattr(lstm, f"weight_ih_l{k}").copy_(weight(f"lstm.{k}.input").view(inputs, -1).T)
            getattr(lstm, f"weight_hh_l{k}").copy_(weight(f"lstm.{k}.recurrent").view(units, -1).T)
            getattr(lstm, f"bias_ih_l{k}").copy_(weight(f"lstm.{k}.bias"))
            getattr(lstm, f"bias_hh_l{k}").zero_()
    for parameter in lstm.parameters():
        parameter.requires_grad_(False)
    head, bias = weight("head.weight").view(units, -1), weight("head.bias")
    functional = torch.nn.functional

    def logits(x, lengths):
        texts, time = x.shape[:2]
        x = functional.conv1d(x.reshape(texts * time, width, dim).transpose(1, 2), windows, weight("windows.bias"))
        x = torch.tanh(x.amax(2))
        for k in range(2):
            gate = torch.sigmoid(x @ square(f"highway.{k}.gate.weight") + weight(f"highway.{k}.gate.bias"))
            h = functional.relu(x @ square(f"highway.{k}.transform.weight") + weight(f"highway.{k}.transform.bias"))
            x = gate * h + (1 - gate) * x
        h = lstm(x.view(texts, time, kernels).transpose(0, 1))[0]
        return h[lengths - 1, torch.arange(texts)] @ head + bias

    place = {name: n for n, name in enumerate(names)}
    known = {tuple(place.get(c, 1) for c in word) for word in data["known"]}
    blank = torch.tensor([n < 2 or not name.strip() for n, name in enumerate(names)])
    documents = [torch.tensor(ids).view(-1, width) for ids in data["documents"]]
    labels = torch.tensor(data["labels"])

    def grads(texts, wanted):
        lengths = torch.tensor([len(text) for text in texts])
        x = torch.zeros(len(texts), int(lengths.max()), width, dtype=torch.long)
        for n, text in enumerate(texts):
            x[n, : len(text)] = text
        vectors = table[x].requires_grad_(True)
        z = logits(vectors, lengths)
        loss = functional.cross_entropy(z, wanted, reduction="sum")
        return x, z.detach(), torch.autograd.grad(loss, vectors)[0]

    def best(x, gradient, edited, most=10):
        """The best legal flips of one text: score, word, slot, character."""
        d = gradient @ table.T
        scores = d - d.gather(2, x[:, :, None])
        scores[:, :, blank] = -torch.inf
        scores[(x == 0) | edited] = -torch.inf
        scores.scatter_(2, x[:, :, None], -torch.inf)
        flat, found = scores.view(-1), []
        order = flat.topk(min(8 * most, flat.numel())).indices.tolist()
        for at in order:
            if len(found) == most or flat[at] == -torch.inf:
                break
            word, slot, new = at // (width * len(names)), at // len(names) % width, at % len(names)
            letters = [c for c in x[word].tolist() if c]
            letters[slot] = new
            if tuple(letters) not in known:
                found.append((float(flat[at]) / 2**0.5, word, slot, new))
        return found

    def attack():
        budgets = [max(1, int((document != 0).sum() * 0.1)) for document in documents]
        beams = [[(0.0, document, torch.zeros_like(document, dtype=torch.bool))] for document in documents]
        flips, successes = [0] * len(documents), 0
        clean = torch.cat([grads(documents[n : n + 64], labels[n : n + 64])[1] for n in range(0, len(documents), 64)])
        for n, z in enumerate(clean):
            if int(z.argmax()) != int(labels[n]):
                beams[n] = []
        step = 0
        while any(beams):
            texts = [(n, text, edited) for n, beam in enumerate(beams) for _, text, edited in beam]
            looks = []
            for at in range(0, len(texts), 64):
                part = texts[at : at + 64]
                x, z, g = grads([text for _, text, _ in part], labels[[n for n, _, _ in part]])
                for k, (n, text, edited) in enumerate(part):
                    more = step < budgets[n]
                    looks.append((z[k], best(text, g[k, : len(text)], edited) if more else []))
            looks = iter(looks)
            for n, beam in enumerate(beams):
                if not beam:
                    continue
                seen = [next(looks) for _ in beam]
                flips[n] = step
                if any(int(z.argmax()) != int(labels[n]) for z, _ in seen):
                    successes += step > 0
                    beams[n] = []
                    continue
                pool = [(score + s, k, *flip) for k, ((score, _, _), (_, found)) in enumerate(zip(beam, seen)) for s, *flip in found]
                pool.sort(key=lambda entry: -entry[0])
                kept, texts_kept = [], set()
                for score, k, word, slot, new in pool:
                    if len(kept) == 10:
                        break
                    text, edited = beam[k][1].clone(), beam[k][2].clone()
                    text[word, slot], edited[word, slot] = new, True
                    key = text.numpy().tobytes()
                    if key not in texts_kept:
                        texts_kept.add(key)
                        kept.append((score, text, edited))
                beams[n] = kept
            step += 1
        return flips, successes

    figures, (flips, successes) = timed(attack)
    say(figures, {"items": len(documents), "successes": successes, "words": flips})


def without_network(folder, stop_words):
    """Nothing is fetched, and nothing is left in the home folder. TextAttack reads NLTK's stop words when it is imported."""
    lists = os.path.join(folder, "nltk", "corpora", "stopwords")
    os.makedirs(lists, exist_ok=True)
    with open(os.path.join(lists, "english"), "w") as file:
        file.write("\n".join(stop_words))
    # As after its own downloads, which these attacks do not need.
    open(os.path.join(folder, "post_install_check_3"), "w").close()
    os.environ.update(HF_HUB_OFFLINE="1", TA_CACHE_DIR=folder, FLAIR_CACHE_ROOT=folder, NLTK_DATA=os.path.join(folder, "nltk"))


def words(folder, rules):
    """TextAttack's gradient-based word swap, without a network: the recipe for HotFlip, but for parts of speech."""
    with open(os.path.join(folder, "words.json")) as file:
        data = json.load(file)
    without_network(folder, data["stop_words"])
    torch = torch_of()
    from textattack import Attack
    from textattack.constraints.overlap import MaxWordsPerturbed
    from textattack.constraints.pre_transformation import RepeatModification, StopwordModification
    from textattack.constraints.semantics import WordEmbeddingDistance
    from textattack.goal_function_results import GoalFunctionResultStatus
    from textattack.goal_functions import UntargetedClassification
    from textattack.models.helpers import LSTMForClassification
    from textattack.models.wrappers import PyTorchModelWrapper
    from textattack.search_methods import BeamSearch
    from textattack.shared import WordEmbedding
    from textattack.transformations import WordSwapGradientBased

    names, special, looks = data["words"], 2, [0]
    weight = lambda name: tensor(torch, folder, name + ".f32")

    # TextAttack takes gradients of words only of this class; nothing of it is used.
    class KimCnn(LSTMForClassification):
        def __init__(self):
            torch.nn.Module.__init__(self)
            table = weight("embedding").view(len(names), -1)
            self.table = torch.nn.Embedding.from_pretrained(table, freeze=True)
            self.windows = [weight(f"windows.{w}.weight").view(w, table.shape[1], -1).permute(2, 1, 0).contiguous() for w in (3, 4, 5)]
            self.biases = [weight(f"windows.{w}.bias") for w in (3, 4, 5)]
            self.head, self.bias = weight("head.weight").view(-1, 2), weight("head.bias")

        def get_input_embeddings(self):
            return self.table

        def forward(self, ids):
            looks[0] += torch.is_grad_enabled()
            x = self.table(ids).transpose(1, 2)
            convolve = torch.nn.functional.conv1d
            parts = [convolve(x, w, b, padding=4).amax(2).relu() for w, b in zip(self.windows, self.biases)]
            return torch.cat(parts, 1) @ self.head + self.bias

    class Tokenizer:
        pad_token_id = 0
        places = {name: n for n, name in enumerate(names)}

        def __call__(self, texts):
            # An unknown word is written without its brackets.
            return [[self.places.get(word, 1) for word in text.split()] for text in texts]

        def convert_id_to_word(self, n):
            # [PAD] and [UNK] are not put in.
            return names[n] if n >= special else ""

    wrapper = PyTorchModelWrapper(KimCnn().eval(), Tokenizer())
    constraints = [RepeatModification(), StopwordModification(), MaxWordsPerturbed(max_num_words=2)]
    if rules == "cosine":
        table = wrapper.model.table.weight.numpy()
        embedding = WordEmbedding(table, Tokenizer.places, dict(enumerate(names)))
        constraints.append(WordEmbeddingDistance(embedding=embedding, min_cos_sim=0.8))
    transformation = WordSwapGradientBased(wrapper, top_n=1)
    search = Attack(UntargetedClassification(wrapper), constraints, transformation, BeamSearch(beam_width=10))
    texts = [" ".join(names[n].strip("[]") for n in ids) for ids in data["sentences"]]

    def attack():
        flips, successes = [], 0
        for text, label in zip(texts, data["labels"]):
            result = search.attack(text, label)
            flips.append(len(result.perturbed_result.attacked_text.attack_attrs.get("modified_indices", ())))
            status = result.perturbed_result.goal_status
            successes += status == GoalFunctionResultStatus.SUCCEEDED
        return flips, successes

    figures, (flips, successes) = timed(attack)
    say(figures, {"items": len(texts), "successes": successes, "words": flips, "backward": looks[0]})


def greedy(folder):
    """TextAttack's greedy search by word importance, which ends after the first place, with the same candidates."""
    with open(os.path.join(folder, "words.json")) as file:
        data = json.load(file)
    without_network(folder, data["stop_words"])
    torch = torch_of()
    from textattack import Attack
    from textattack.goal_function_results import GoalFunctionResultStatus
    from textattack.goal_functions import UntargetedClassification
    from textattack.models.wrappers import PyTorchModelWrapper
    from textattack.search_methods import GreedyWordSwapWIR
    from textattack.transformations import WordSwap

    names = data["words"]
    weight = lambda name: tensor(torch, folder, name + ".f32")
    units, dim = 64, 64

    class BiLstm(torch.nn.Module):
        def __init__(self):
            super().__init__()
            # One row more, of zeros: the place of a word that is taken away.
            table = torch.cat([weight("embedding").view(-1, dim), torch.zeros(1, dim)])
            self.table = torch.nn.Embedding.from_pretrained(table, freeze=True)
            self.lstm = torch.nn.LSTM(dim, units, bidirectional=True, batch_first=True)
            with torch.no_grad():
                for d, suffix in enumerate(("", "_reverse")):
                    part = lambda name: weight(f"recurrent.0.{d}.{name}")
                    getattr(self.lstm, "weight_ih_l0" + suffix).copy_(part("input").view(dim, -1).T)
                    getattr(self.lstm, "weight_hh_l0" + suffix).copy_(part("recurrent").view(units, -1).T)
                    getattr(self.lstm, "bias_ih_l0" + suffix).copy_(part("bias"))
                    getattr(self.lstm, "bias_hh_l0" + suffix).zero_()
            self.hidden, self.bias = weight("attention.hidden.weight").view(2 * units, -1), weight("attention.hidden.bias")
            self.query = weight("attention.query.weight").view(-1, 1)
            self.head, self.head_bias = weight("head.weight").view(2 * units, -1), weight("head.bias")

        def forward(self, ids):
            h = self.lstm(self.table(ids))[0]
            weights = torch.softmax(torch.tanh(h @ self.hidden + self.bias) @ self.query, 1)
            return (weights * h).sum(1) @ self.head + self.head_bias

    class Tokenizer:
        places = {**{name: n for n, name in enumerate(names)}, "[UNK]": len(names)}

        def __call__(self, texts):
            # An unknown word of a sentence is written without its brackets; [UNK] is a word that is taken away.
            return [[self.places.get(word, 1) for word in text.split()] for text in texts]

    class Candidates(WordSwap):
        words = names[slice(*data["candidates"])]

        def _get_replacement_words(self, word):
            return self.words

    class OnePlace(GreedyWordSwapWIR):
        def _get_index_order(self, text):
            order, over = super()._get_index_order(text)
            return order[:1], over

    wrapper = PyTorchModelWrapper(BiLstm().eval(), Tokenizer())
    goal = UntargetedClassification(wrapper, model_batch_size=64)
    search = Attack(goal, [], Candidates(), OnePlace(wir_method="unk"))
    texts = [" ".join(names[n].strip("[]") for n in ids) for ids in data["sentences"]]

    def attack():
        success, queries = [], 0
        with torch.inference_mode():
            for text, label in zip(texts, data["labels"]):
                result = search.attack(text, label)
                success.append(result.perturbed_result.goal_status == GoalFunctionResultStatus.SUCCEEDED)
                queries += result.num_queries
        return success, queries

    figures, (success, queries) = timed(attack)
    say(figures, {"items": len(texts), "queries": queries, "success": success})


def windows(folder):
    """RNN-Test, state and CS: a window at a time, states by autograd, the nearest embedding along the gradient."""
    torch = torch_of()
    with open(os.path.join(folder, "windows.json")) as file:
        data = json.load(file)
    weight = lambda name: tensor(torch, folder, name + ".f32")
    units = len(weight("lstm.0.bias")) // 4
    table = weight("embedding").view(-1, units)
    cells = [(weight(f"lstm.{k}.input").view(-1, 4 * units), weight(f"lstm.{k}.recurrent").view(-1, 4 * units), weight(f"lstm.{k}.bias")) for k in (0, 1)]
    head, bias = weight("head.weight").view(units, -1), weight("head.bias")
    bounds = [-0.8, -0.2, 0.2, 0.8]
    functional = torch.nn.functional

    def forward(x, target):
        hs, cs = [], []
        for inputs, recurrent, b in cells:
            h, c = torch.zeros(units), torch.zeros(units)
            layer = []
            for row in x @ inputs + b:
                i, f, g, o = (row + h @ recurrent).chunk(4)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(c)
                layer.append((h, c))
            x = torch.stack([h for h, _ in layer])
            hs.append(x)
            cs.append(torch.stack([c for _, c in layer]))
        loss = functional.cross_entropy(x @ head + bias, target, reduction="sum")
        return torch.stack(hs), torch.stack(cs), loss

    def test():
        covered = {name: torch.zeros(size, dtype=torch.bool) for name, size in (("HS", (2, 10, units)), ("DX", (2, 10, units)), ("CS", (5, 2, 10, units)))}
        tokens = []
        for window, target, t in zip(data["windows"], data["targets"], data["positions"]):
            window, target = torch.tensor(window), torch.tensor(target)
            x = table[window].requires_grad_(True)
            h, c, _ = forward(x, target)
            state = (h[:, t - 1] + c[:, t] - h[:, t]).sum()
            v, flat = torch.tanh(c.detach()).flatten(), c.flatten()
            higher = torch.where(v < 0.8, v, -2.0).topk(25).indices
            lower = torch.where(v > -0.8, -v, -2.0).topk(25).indices
            g = torch.autograd.grad(state + flat[higher].sum() - flat[lower].sum(), x)[0][t]
            own, new = int(window[t]), int(window[t])
            for scale in range(5, 70, 5):
                distances = (table - (table[own] + scale * g)).square().sum(1)
                distances[:2] = torch.inf
                new = int(distances.argmin())
                if new != own:
                    break
            window[t] = new
            tokens.append(new)
            if new != own:
                with torch.no_grad():
                    h, c, _ = forward(table[window], target)
                    covered["HS"] |= functional.one_hot(h.argmax(2), units).bool()
                    least, most = h.amin((1, 2), True), h.amax((1, 2), True)
                    covered["DX"] |= (h - least) / (most - least) > 0.5
                    section = sum((torch.tanh(c) > bound).long() for bound in bounds)
                    covered["CS"] |= functional.one_hot(section, 5).bool().permute(3, 0, 1, 2)
        return tokens

    figures, tokens = timed(test)
    say(figures, {"items": len(tokens), "tokens": tokens})


JOBS = {
    "numpy-best": numpy_best,
    "torch-best": torch_best,
    "svm": svm,
    "bayes": bayes,
    "lstm": lstm,
    "jsma": jsma,
    "hotflip": hotflip,
    "words": words,
    "greedy": greedy,
    "windows": windows,
}

if __name__ == "__main__":
    JOBS[sys.argv[1]](*sys.argv[2:])
