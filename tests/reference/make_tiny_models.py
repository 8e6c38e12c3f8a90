"""Writes the small random-weight models of odd shapes in tests/models/. The seed is fixed: the same
numpy writes the same bytes.

    python make_tiny_models.py FOLDER
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np

from gguf_file import write

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CONTROL, NORMAL = 3, 1
CHAT_TEMPLATE = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content']"
    " + '<|im_end|>' + '\\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
# What the tokenizers' merges are learned from.
CORPUS = """the quick brown fox jumps over the lazy dog and then the other dog runs after it while
a small boat sails along the river in the morning light there are three things that one should know
about the weather here it rains it shines and it never stays the same for more than an hour so take
a coat with you when you go out return the number of the items in the list and for each of them
print the name the size and the time of the last change to the file when water is heated under a
lid its bubbles grow until they break at the surface because every metal expands as its atoms move
further from each other our neighbours painted their wooden fence green last summer but winter
storms washed most of that colour away again"""

# One line each: what is odd about it. All are llama models; "types" gives each kind of matrix its
# format ("*": all others). Sizes: K of a block format is a multiple of its block, 32 or 256.
MODELS = {
    # Nothing is a multiple of 16 but everything is plain float; GGUF version 2.
    "f32-odd": dict(hidden=72, heads=3, kv=1, head_dim=24, ffn=88, vocab=307, layers=2,
                    types={"*": "F32"}, pre="gpt-2", version=2),
    # A separate output matrix, one KV head for each query head, Llama 3's frequency factors.
    "f16-untied": dict(hidden=96, heads=3, kv=3, head_dim=32, ffn=32, vocab=353, layers=2,
                       types={"*": "F16"}, pre="llama-bpe", tied=False, rope_factors=True,
                       rope_base=500000.0),
    # Seven heads share one KV head and are wider together than the hidden size.
    "bf16-wide-heads": dict(hidden=96, heads=7, kv=1, head_dim=32, ffn=96, vocab=300, layers=1,
                            types={"*": "BF16"}, pre="smollm"),
    # One head of all; the file asks for BOS before a prompt.
    "q8_0-one-head": dict(hidden=96, heads=1, kv=1, head_dim=96, ffn=160, vocab=399, layers=2,
                          types={"*": "Q8_0"}, pre="llama-bpe", add_bos=True),
    # A head of 48 with 32 rotated; the heads together are half of the hidden size, and no
    # multiple of a block.
    "q8_0-partial-rope": dict(hidden=288, heads=3, kv=3, head_dim=48, rope_dim=32, ffn=96,
                              vocab=321, layers=1, pre="smollm",
                              types={"*": "Q8_0", "attn_output": "F16"}),
    # A head of 80 with 20 rotated pairs; positions scaled by 4.
    "q4_0-linear-rope": dict(hidden=160, heads=2, kv=1, head_dim=80, rope_dim=40, ffn=224,
                             vocab=450, layers=2, types={"*": "Q4_0"}, pre="gpt-2",
                             rope_linear=4.0),
    # As f32-odd, with blocks: one block in a head, three in a row.
    "q4_0-small": dict(hidden=96, heads=3, kv=1, head_dim=32, ffn=32, vocab=311, layers=3,
                       types={"*": "Q4_0"}, pre="smollm", tied=False),
    # The formats of the default model (embedding Q8_0, the rest Q4_1) at an odd shape, GGUF v2.
    "q4_1-like-default": dict(hidden=288, heads=9, kv=3, head_dim=32, ffn=224, vocab=409, layers=1,
                              types={"*": "Q4_1", "token_embd": "Q8_0"}, pre="smollm", version=2,
                              chat_template=True),
    # Twelve heads in three groups, an MLP narrower than the hidden size, a large epsilon.
    "q4_1-narrow-mlp": dict(hidden=192, heads=12, kv=3, head_dim=16, ffn=32, vocab=331, layers=2,
                            types={"*": "Q4_1"}, pre="llama-bpe", eps=0.1),
    # Every format in one file, among them both matrices of a pair that share their input.
    "mixed-types": dict(hidden=160, heads=4, kv=2, head_dim=48, rope_dim=48, ffn=96, vocab=389,
                        layers=1, tied=False, pre="llama-bpe", rope_base=1000000.0,
                        types={"token_embd": "BF16", "output": "Q4_1", "attn_q": "Q4_0",
                               "attn_k": "F16", "attn_v": "Q8_0", "attn_output": "BF16",
                               "ffn_gate": "Q4_1", "ffn_up": "Q4_0", "ffn_down": "F32"}),
    # Both rope extensions at once, a head of 20 in plain floats.
    "f16-both-ropes": dict(hidden=100, heads=5, kv=5, head_dim=20, ffn=52, vocab=320, layers=1,
                           types={"*": "F16"}, pre="gpt-2", rope_factors=True, rope_linear=2.5,
                           add_bos=True, tied=False),
    # The formats that files called Q4_K_M mix; four heads in a block of 256, three blocks in the
    # MLP.
    "q4_k_m-like": dict(hidden=256, heads=8, kv=2, head_dim=64, ffn=768, vocab=301, layers=1,
                        pre="llama-bpe", tied=False,
                        types={"*": "Q4_K", "attn_v": "Q6_K", "ffn_down": "Q6_K",
                               "output": "Q6_K"}),
    # Where rows are no multiple of 256 such files have others: here attn_output is Q8_0. One
    # matrix is embedding and output.
    "q6_k-odd-heads": dict(hidden=256, heads=3, kv=1, head_dim=32, ffn=512, vocab=317, layers=1,
                           pre="smollm", types={"*": "Q6_K", "attn_output": "Q8_0",
                                                "ffn_down": "Q4_K"}),
}


def byte_letters():
    """The letter that byte-level BPE writes for each byte: itself if printable, else from U+0100."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, spare = {}, 256
    for byte in range(256):
        letters[byte] = chr(byte) if byte in printable else chr(spare)
        spare += byte not in printable
    return letters


def learn_merges(count):
    """The `count` pairs that byte pair encoding joins first in CORPUS, best first."""
    space = byte_letters()[32]
    words = Counter(tuple(space + word) for word in CORPUS.split())
    merges = []
    while len(merges) < count:
        pairs = Counter()
        for word, times in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += times
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        words = Counter({joined(word, best): times for word, times in words.items()})
    return merges


def joined(word, pair):
    out = []
    for letter in word:
        if out and (out[-1], letter) == pair:
            out[-1] += letter
        else:
            out.append(letter)
    return tuple(out)


def tokenizer_metadata(shape):
    letters = list(byte_letters().values())
    merges = learn_merges(shape["vocab"] - len(letters) - len(SPECIAL))
    tokens = SPECIAL + letters + [a + b for a, b in merges]
    assert len(set(tokens)) == shape["vocab"]
    metadata = {
        "tokenizer.ggml.model": ("str", "gpt2"),
        "tokenizer.ggml.pre": ("str", shape["pre"]),
        "tokenizer.ggml.tokens": ("arr:str", tokens),
        "tokenizer.ggml.token_type": ("arr:i32", [CONTROL] * 3 + [NORMAL] * (len(tokens) - 3)),
        "tokenizer.ggml.merges": ("arr:str", [a + " " + b for a, b in merges]),
        "tokenizer.ggml.bos_token_id": ("u32", 0),
        "tokenizer.ggml.eos_token_id": ("u32", 2),
        "tokenizer.ggml.add_bos_token": ("bool", shape.get("add_bos", False)),
    }
    if shape.get("chat_template"):
        metadata["tokenizer.chat_template"] = ("str", CHAT_TEMPLATE)
    return metadata


def model_metadata(name, shape):
    metadata = {
        "general.architecture": ("str", "llama"),
        "general.name": ("str", "tiny " + name),
        "llama.block_count": ("u32", shape["layers"]),
        "llama.context_length": ("u32", 256),
        "llama.embedding_length": ("u32", shape["hidden"]),
        "llama.feed_forward_length": ("u32", shape["ffn"]),
        "llama.attention.head_count": ("u32", shape["heads"]),
        "llama.attention.head_count_kv": ("u32", shape["kv"]),
        "llama.attention.layer_norm_rms_epsilon": ("f32", shape.get("eps", 1e-5)),
        "llama.rope.dimension_count": ("u32", shape.get("rope_dim", shape["head_dim"])),
        "llama.rope.freq_base": ("f32", shape.get("rope_base", 10000.0)),
        "llama.vocab_size": ("u32", shape["vocab"]),
    }
    if shape["hidden"] != shape["heads"] * shape["head_dim"]:
        metadata["llama.attention.key_length"] = ("u32", shape["head_dim"])
        metadata["llama.attention.value_length"] = ("u32", shape["head_dim"])
    if "rope_linear" in shape:
        metadata["llama.rope.scaling.type"] = ("str", "linear")
        metadata["llama.rope.scaling.factor"] = ("f32", shape["rope_linear"])
    return metadata


def tensors(shape, rng):
    """Random weights that treat states much as trained ones do: scores differ as much as the default
    model's, and an attention or an MLP adds up to half of what is there, on purpose more than in a
    trained layer: so that attention prefers some tokens clearly and a wrong rotation shows."""
    hidden, ffn, vocab = shape["hidden"], shape["ffn"], shape["vocab"]
    q_width, kv_width = shape["heads"] * shape["head_dim"], shape["kv"] * shape["head_dim"]
    types, out = shape["types"], {}
    tied = shape.get("tied", True)

    def matrix(name, rows, cols, gain):
        kind = name.split(".")[-2]
        values = rng.standard_normal((rows, cols)) * gain / np.sqrt(cols)
        out[name] = (types.get(kind, types.get("*")), values.astype(np.float32))

    def norm(name, gain=1):
        values = gain * (1 + 0.2 * rng.standard_normal(hidden))
        out[name] = ("F32", values.astype(np.float32))

    matrix("token_embd.weight", vocab, hidden, np.sqrt(hidden))
    if tied:
        # Either sign: the embedding would find its own token again, and answers repeat the prompt.
        norm("output_norm.weight", 2 / np.sqrt(hidden) * rng.choice([-1, 1], hidden))
    else:
        norm("output_norm.weight")
        matrix("output.weight", vocab, hidden, 2.0)
    if shape.get("rope_factors"):
        pairs = shape.get("rope_dim", shape["head_dim"]) // 2
        out["rope_freqs.weight"] = ("F32", np.linspace(1, 8, pairs).astype(np.float32))
    for layer in range(shape["layers"]):
        block = "blk.%d." % layer
        norm(block + "attn_norm.weight")
        # The scores of a head have a standard deviation of 1.45^2 (mean of the default model: 2.2).
        matrix(block + "attn_q.weight", q_width, hidden, 1.45)
        matrix(block + "attn_k.weight", kv_width, hidden, 1.45)
        matrix(block + "attn_v.weight", kv_width, hidden, 1.0)
        matrix(block + "attn_output.weight", hidden, q_width, 0.7)
        norm(block + "ffn_norm.weight")
        matrix(block + "ffn_gate.weight", ffn, hidden, 1.5)
        matrix(block + "ffn_up.weight", ffn, hidden, 1.0)
        matrix(block + "ffn_down.weight", hidden, ffn, 0.7)
    return out


def main(folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, shape) in enumerate(MODELS.items()):
        metadata = model_metadata(name, shape) | tokenizer_metadata(shape)
        weights = tensors(shape, np.random.Generator(np.random.PCG64(1000 + number)))
        path = folder / (name + ".gguf")
        write(path, shape.get("version", 3), metadata, weights)
        print("%8d bytes  %s" % (path.stat().st_size, path))


if __name__ == "__main__":
    main(sys.argv[1])
