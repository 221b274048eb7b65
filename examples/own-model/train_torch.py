"""Trains the model of model_torch.py on token ids: reads tokens.parquet, writes weights.pt."""

import pyarrow.parquet
import torch

torch.manual_seed(0)
table = pyarrow.parquet.read_table("tokens.parquet").to_pydict()
rows = [n for n, split in enumerate(table["split"]) if split == "train"]
items = [table["ids"][n] for n in rows]
labels = torch.tensor([table["label"][n] for n in rows])
lengths = torch.tensor([len(item) for item in items])
longest = int(lengths.max())
tokens = torch.tensor([item + [0] * (longest - len(item)) for item in items])
words = 1 + max(max(ids, default=0) for ids in table["ids"])

embedding = torch.nn.Embedding(words, 32, padding_idx=0)
gru = torch.nn.GRU(32, 32, batch_first=True)
head = torch.nn.Linear(32, 2)
parts = torch.nn.ModuleDict({"embedding": embedding, "gru": gru, "head": head})
optimiser = torch.optim.Adam(parts.parameters(), lr=0.01)
for epoch in range(5):
    for batch in torch.randperm(len(rows)).split(32):
        states, _ = gru(embedding(tokens[batch]))
        last = states[torch.arange(len(batch)), lengths[batch] - 1]
        loss = torch.nn.functional.cross_entropy(head(last), labels[batch])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
torch.save(parts.state_dict(), "weights.pt")
