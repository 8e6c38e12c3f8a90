"""The logits of a llama model in a GGUF file, computed plainly in float64 with numpy.

Weights are turned into floats as they are read; nothing is rounded after that. Written from the
architecture's definition, sharing no code with Troika, so that the two can check each other.

    python llama_reference.py MODEL.gguf 504 3575 282     # top logits after these token ids
"""

import sys

import numpy as np

from gguf_file import Reader


class Cache:
    """The rotated keys and the values of the tokens seen so far, for each layer."""

    def __init__(self, layers):
        self.keys = [None] * layers
        self.values = [None] * layers

    def append(self, layer, keys, values):
        if self.keys[layer] is not None:
            keys = np.concatenate([self.keys[layer], keys])
            values = np.concatenate([self.values[layer], values])
        self.keys[layer], self.values[layer] = keys, values
        return keys, values


class Llama:
    def __init__(self, path, dtype=np.float64):
        self.reader = Reader(path)
        self.dtype = dtype
        meta = self.reader.metadata
        assert meta["general.architecture"] == "llama"

        def get(key, default=None):
            return meta.get("llama." + key, default)

        self.layers = get("block_count")
        self.heads = get("attention.head_count")
        self.kv_heads = get("attention.head_count_kv", self.heads)
        self.head_dim = get("attention.key_length", get("embedding_length") // self.heads)
        self.eps = get("attention.layer_norm_rms_epsilon")
        self.frequencies = self.rope_frequencies(get)
        self.weights = {n: self.reader.tensor(n).astype(dtype) for n in self.reader.tensors}
        self.output = self.weights.get("output.weight", self.weights["token_embd.weight"])

    def rope_frequencies(self, get):
        """The angle, per position, of each rotated pair."""
        rope_dim = get("rope.dimension_count", self.head_dim)
        pairs = np.arange(rope_dim // 2, dtype=np.float64)
        frequencies = get("rope.freq_base", 10000.0) ** (-2 * pairs / rope_dim)
        if get("rope.scaling.type", "none") == "linear":
            frequencies = frequencies / get("rope.scaling.factor")
        if "rope_freqs.weight" in self.reader.tensors:
            frequencies = frequencies / self.reader.tensor("rope_freqs.weight").astype(np.float64)
        return frequencies

    def rotate(self, x, positions):
        """Rotates the pairs (0, 1), (2, 3), ... of x[T, heads, head_dim]; the rest stays."""
        angles = positions[:, None, None] * self.frequencies
        cos, sin = np.cos(angles).astype(self.dtype), np.sin(angles).astype(self.dtype)
        end = 2 * len(self.frequencies)
        even, odd = x[..., 0:end:2], x[..., 1:end:2]
        out = x.copy()
        out[..., 0:end:2] = even * cos - odd * sin
        out[..., 1:end:2] = even * sin + odd * cos
        return out

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.eps) * self.weights[name]

    def attention(self, layer, x, cache, positions):
        name = "blk.%d.attn_" % layer
        tokens = len(x)
        q = (x @ self.weights[name + "q.weight"].T).reshape(tokens, self.heads, self.head_dim)
        k = (x @ self.weights[name + "k.weight"].T).reshape(tokens, self.kv_heads, self.head_dim)
        v = (x @ self.weights[name + "v.weight"].T).reshape(tokens, self.kv_heads, self.head_dim)
        q = self.rotate(q, positions)
        k, v = cache.append(layer, self.rotate(k, positions), v)
        hidden_from = np.arange(len(k))[None, :] > positions[:, None]
        out = np.empty_like(q)
        for head in range(self.heads):
            group = head * self.kv_heads // self.heads
            scores = q[:, head] @ k[:, group].T / np.sqrt(self.head_dim)
            scores[hidden_from] = -np.inf
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            out[:, head] = scores / scores.sum(axis=1, keepdims=True) @ v[:, group]
        return out.reshape(tokens, -1) @ self.weights[name + "output.weight"].T

    def mlp(self, layer, x):
        name = "blk.%d.ffn_" % layer
        gate = x @ self.weights[name + "gate.weight"].T
        up = x @ self.weights[name + "up.weight"].T
        return (gate / (1 + np.exp(-gate)) * up) @ self.weights[name + "down.weight"].T

    def hidden(self, ids, cache=None):
        """The final normed states [T, hidden] of `ids`, which follow what the cache has seen."""
        cache = cache or Cache(self.layers)
        seen = 0 if cache.keys[0] is None else len(cache.keys[0])
        positions = np.arange(seen, seen + len(ids))
        x = self.weights["token_embd.weight"][np.asarray(ids)]
        for layer in range(self.layers):
            normed = self.norm(x, "blk.%d.attn_norm.weight" % layer)
            x = x + self.attention(layer, normed, cache, positions)
            x = x + self.mlp(layer, self.norm(x, "blk.%d.ffn_norm.weight" % layer))
        return self.norm(x, "output_norm.weight")

    def logits(self, ids, cache=None):
        return self.hidden(ids, cache) @ self.output.T

    def mean_nll(self, ids, rows=256):
        """Mean over i >= 1 of -log p(ids[i] | ids[:i]), in natural units."""
        states = self.hidden(ids[:-1])
        total = 0.0
        for start in range(0, len(states), rows):
            logprobs = log_softmax(states[start : start + rows] @ self.output.T)
            targets = np.asarray(ids[1 + start : 1 + start + len(logprobs)])
            total -= logprobs[np.arange(len(targets)), targets].sum()
        return total / (len(ids) - 1)

    def greedy(self, ids, count):
        """`count` most likely tokens one after another, and the gap to the second in each step."""
        cache = Cache(self.layers)
        tokens, gaps, pending = [], [], list(ids)
        for _ in range(count):
            last = self.hidden(pending, cache)[-1] @ self.output.T
            second, best = np.argsort(last)[-2:]
            tokens.append(int(best))
            gaps.append(round(float(last[best] - last[second]), 5))
            pending = [int(best)]
        return tokens, gaps


def log_softmax(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def top(logits, count):
    """The `count` best (id, log-probability) pairs of one row of logits."""
    logprobs = log_softmax(logits)
    return [[int(i), float(logprobs[i])] for i in np.argsort(-logprobs)[:count]]


if __name__ == "__main__":
    model = Llama(sys.argv[1])
    for token, logprob in top(model.logits([int(a) for a in sys.argv[2:]])[-1], 10):
        print("%6d %10.5f" % (token, logprob))
