"""The token ids of a text by the `tokenizers` package, set up from a GGUF file's metadata."""

from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers

CONTROL, USER_DEFINED = 3, 4

# Llama 3's cut of a text into words; the gpt-2 cut comes with the package.
LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def pre_tokenizer(name):
    words = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if name == "gpt-2":
        return words
    if name == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), words])
    assert name == "llama-bpe", name
    split = pre_tokenizers.Split(Regex(LLAMA_3), "isolated")
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([split, as_bytes])


class ReferenceTokenizer:
    def __init__(self, metadata):
        tokens = metadata["tokenizer.ggml.tokens"]
        types = metadata["tokenizer.ggml.token_type"]
        pre = metadata["tokenizer.ggml.pre"]
        merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
        self.tokenizer = Tokenizer(
            models.BPE(
                vocab={token: i for i, token in enumerate(tokens)},
                merges=merges,
                ignore_merges=pre == "llama-bpe",
            )
        )
        self.tokenizer.pre_tokenizer = pre_tokenizer(pre)
        special = [t for t, kind in zip(tokens, types) if kind in (CONTROL, USER_DEFINED)]
        self.tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t in special])

    def encode(self, text):
        """Ids of `text`; names of special tokens in it are meant as such. Adds no BOS or EOS."""
        return self.tokenizer.encode(text, add_special_tokens=False).ids
