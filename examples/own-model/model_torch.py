"""Serves a PyTorch model that reads token ids, with gradients: an embedding, a GRU and a linear layer.

Its stage has reads = "tokens" and gradients = true.
"""

import torch

import ablate

torch.manual_seed(0)
torch.set_num_threads(1)


class Classifier(torch.nn.Module):
    def __init__(self, words: int, dim: int = 32, units: int = 32, classes: int = 2) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(words, dim, padding_idx=0)
        self.gru = torch.nn.GRU(dim, units, batch_first=True)
        self.head = torch.nn.Linear(units, classes)

    def from_vectors(self, vectors: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        states, _ = self.gru(vectors)
        # Padding comes after the text: the state at its last token has not seen any.
        last = states[torch.arange(len(states)), lengths - 1]
        return torch.log_softmax(self.head(last), dim=1)


weights = torch.load("weights.pt", weights_only=True)
model = Classifier(words=weights["embedding.weight"].shape[0])
model.load_state_dict(weights)
model.eval()


def padded(items):
    lengths = torch.tensor([max(1, len(item)) for item in items])
    longest = int(lengths.max())
    return torch.tensor([item + [0] * (longest - len(item)) for item in items]), lengths


def predict(items):
    tokens, lengths = padded(items)
    with torch.no_grad():
        return model.from_vectors(model.embedding(tokens), lengths).exp()


def gradient(items, classes):
    tokens, lengths = padded(items)
    vectors = model.embedding(tokens).detach().requires_grad_()
    log_p = model.from_vectors(vectors, lengths)
    log_p[torch.arange(len(items)), torch.tensor(classes)].sum().backward()
    return [vectors.grad[n, : len(item)] for n, item in enumerate(items)]


ablate.serve(predict=predict, gradient=gradient, vectors=model.embedding.weight)
