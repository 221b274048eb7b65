"""Serves a PyTorch model that reads token ids (reads = "tokens"): an embedding, a GRU and a linear layer."""

import torch

import ablate

torch.manual_seed(0)
torch.set_num_threads(1)


class Classifier(torch.nn.Module):
    def __init__(self, words: int = 5000, dim: int = 32, units: int = 32, classes: int = 2) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(words, dim, padding_idx=0)
        self.gru = torch.nn.GRU(dim, units, batch_first=True)
        self.head = torch.nn.Linear(units, classes)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states, _ = self.gru(self.embedding(tokens))
        return self.head(states.mean(dim=1))


model = Classifier()
# model.load_state_dict(torch.load("weights.pt", weights_only=True))
model.eval()


def predict(items):
    longest = max(1, max(len(item) for item in items))
    tokens = torch.tensor([item + [0] * (longest - len(item)) for item in items])
    with torch.no_grad():
        return torch.softmax(model(tokens), dim=1)


ablate.serve(predict=predict)
