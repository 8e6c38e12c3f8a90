#!/usr/bin/env python3
"""Records the token ids that an independent tokenizer gives for many kinds of text.

    python3 -m venv .deps/reference
    .deps/reference/bin/pip install -r tests/reference/requirements.txt
    .deps/reference/bin/python tests/reference/record_tokenizer.py models/SmolLM2-135M-Instruct.Q4_1.gguf

writes tests/golden/tokenizer-smollm2.json (vocabulary of the model file) and
tests/golden/tokenizer-pre.json (a small vocabulary, trained here without cutting words, so that a
wrong cut shows in the ids; one list for each pre-tokenizer). The texts are the same every time.
"""

import json
import pathlib
import random
import sys

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from gguf_file import Reader

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|"
          r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
STEPS = {
    "smollm": [r"\p{N}", GPT2],
    "gpt-2": [GPT2],
    "llama-bpe": [LLAMA3],
    "qwen2": [LLAMA3.replace("{1,3}", "")],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
}

PLAIN = """The capital of France is|Hello world! Café déjà vu — 123 😊|<s>G|text<special> text
The train is moving very fast!|a literal \\n and \\t|請你基於以下「評估標準」|请你基于以下「评估标准」
ied 4 ½ months|¼ ¾ ² ³ Ⅷ ⅷ ⑳ ٣٤٥ ໑໒ 〇一二三|I'm you're he'll we've they'd it's don't|I'M YOU'RE HE'LL
WE'VE THEY'D IT'S DON'T|'s't're've'm'll'd|'S'T'RE'vE'M'lL'D|rock 'n' roll ''' '' '|!!!!!!|?!?!?!...---
C++ x=y+z; if (a<=b) {return a[0]->p;}|$100 + €200 = ¥300 ~ ^|`` code `` ```py|#hashtag @user_name
https://example.com/a?b=c&d=%20#e|user@example.com|C:\\Users\\name\\file.txt|/usr/local/bin:/bin|a_b__c___d
camelCase PascalCase snake_case SCREAMING_CASE|3.14159 -1e-10 0xFF 1,000,000|2024-02-29T12:34:56Z|v1.2.3-rc4
Привет, мир! Как дела?|Щёлково ЁЖ ыъэ|Γειά σου Κόσμε|Ἑλληνική ἀρχή|שלום עולם|שָׁלוֹם|مرحبا بالعالم|اَلْعَرَبِيَّةُ
हिन्दी में नमस्ते|বাংলা ভাষা|தமிழ் மொழி|తెలుగు|ಕನ್ನಡ|മലയാളം|ไทยภาษา ก็ได้|ພາສາລາວ|ភាសាខ្មែរ សួស្តី|မြန်မာဘာသာ|བོད་སྐད
日本語のテキスト、カタカナ|한국어 텍스트입니다|中文，标点。「引号」|ქართული ენა|Հայերեն|አማርኛ|ᐃᓄᒃᑎᑐᑦ|ᏣᎳᎩ|Монгол ᠮᠣᠩᠭᠣᠯ
Tiếng Việt có dấu|İstanbul ığüşöç|Ærøskøbing ß ẞ ſ|naïve café façade|ﬁ ﬂ ﬀ ﬃ|Å Å Å|ñ ñ
😀😃😄|👨‍👩‍👧‍👦 family|👍🏽 👋🏿|🏳️‍🌈 🏴‍☠️|🇫🇷🇩🇪🇯🇵|❤️‍🔥 ☠️|1️⃣2️⃣#️⃣|🧑🏻‍💻 writes|é̂̃ z̷̢̛a̵l̸g̵o̶
∀x∈ℝ: ⌈x⌉ = −⌊−x⌋ ∑∫√∞|α→β ⇒ γ ≠ δ|┌─┐│└┘ █▓▒░|♠♥♦♣ ♩♪♫|™ © ® ° § ¶ †|“quotes” ‘single’ «guillemets» „low“|‐‑‒–—―…
𝕳𝖊𝖑𝖑𝖔 𝓦𝓸𝓻𝓵𝓭 𝟙𝟚𝟛|𒀀𒁀 𓀀𓁐|🜀🝳|㍿㎏㏒|ｆｕｌｌ　ｗｉｄｔｈ １２３|ＡＢＣ！？|⠓⠑⠇⠇⠕|ꙮ Ꙁ ⱥ|𐍈𐌰 𐤀𐤁|אבג abc אבג
<|im_start|>user\\nhello who are y…|<|endoftext|>|<repo_name>x<file_sep>|</s>|[INST] hi [/INST]|<|im_start|
def f(x):\\n    return x|SELECT * FROM t WHERE a='b';|{"key": [1, 2.5, null]}|<div class="x">&nbsp;</div>"""

SPACES = [
    "", " ", "  ", "   ", "\n", "\n\n", "\n\n\n", "\t", "\t\t", " \n", "\n ", "\n =", "\r\n", "\r\n\r\n", "\r", "a\rb",
    "  leading", "trailing  ", "trailing\n", "a  b", "a   b", "a    b", "a\tb", "a\t\tb", "a \t b", "\ta", " \ta",
    "a\n\nb", "a\n \nb", "a \n b", "a\n\n  b", "  \n  \n  x", "x \n", "x  \n\n", "\n\t\n x", "x\n\n\n\n", " \r\n \r\n x",
    "a\u00a0b", "a\u00a0\u00a0b", "\u00a0 \u00a0", "a\u3000b", "\u3000\u3000字", "a\x85b", "a \x85 b", "a\u2028b\u2029c",
    "a\u2003b\u2003\u2003c", "\u200b zero \u200b width", "a\ufeffb", "\u180e x\u180e", "x\u1680y", "a\u202f1\u202f000",
    "1\u20092", " 1", "  1", "   12", "1 2  3   4", "a 1 b", "\n1\n", "1\n\n2", "x1y22z333", "\x0b\x0c", "a\x0bb\x0cc",
    "\x00", "a\x00b", "\x00\x00\x00", "\x01\x02\x03\x04\x05\x06", "\x1b[31mred\x1b[0m", "\x7f", "\x1c\x1d\x1e\x1f",
    "tabs\tand  spaces \t\n mixed\u3000\u00a0 end ", " ' ", " 's", " 'S x", "don 't", "!\n", "!\n\n!", " !\r\n", "!! !!",
    "code:\n\n    if x:\n\t\treturn\n", "a" * 70, "!" * 70, " " * 70, "\n" * 40, "=" * 33, "ab" * 40, "9" * 40, " a" * 30,
    "́", "á", " ́a", "e\u0301\u0301", "a\u200db", "\u200d", "\ufffd", "a\ufffdb \ufffd", "\ue000\uf8ff", "\U0010ffff",
    "\U000f0000x", "\u0378\u0379", "\U00031350\U0002ebf0 x", "x\U00011f04\U00011f50y", "𠀀𪚥", "\U000e0001\U000e0020",
]
SPACES += ["".join(str(d % 10) for d in range(1, n + 1)) for n in range(1, 10)]
SPACES += [f"x{'7' * n}y {'8' * n} ,{'0' * n}" for n in range(1, 8)]

RANGES = [
    (0x20, 0x7E), (0x09, 0x0D), (0xA0, 0xFF), (0x100, 0x24F), (0x2B0, 0x36F), (0x370, 0x3FF), (0x400, 0x52F),
    (0x530, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xEFF), (0x1000, 0x109F), (0x1100, 0x11FF), (0x1780, 0x17FF),
    (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x218F), (0x2190, 0x23FF), (0x2460, 0x27BF), (0x3000, 0x30FF),
    (0x4E00, 0x9FFF), (0xA640, 0xA69F), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0xFE00, 0xFE0F), (0xFF00, 0xFFEF),
    (0x10000, 0x1007F), (0x1D400, 0x1D7FF), (0x1F300, 0x1F6FF), (0x1F900, 0x1F9FF), (0x20000, 0x2A6DF), (0x1, 0x10FFFF),
]
WORDS = ["the", " of", " and", "'s", "'ll", "'RE", "123", "4567", " ", "  ", "\n", "\n\n", "\t", "\r\n", "!", "...",
         " (", "==", "é", "ß", "漢字", "かな", "한글", "привет", "😊", "👩‍👧", "\u00a0", "\u3000", "\u0301", "½", "٣", "ៃ"]


def texts(n_ranges, n_words):
    rng = random.Random(20240229)
    out = [line.replace("\\n", "\n") for row in PLAIN.split("\n") for line in row.split("|")]
    # The split above also cuts the names of special tokens; whole ones are added here.
    out += ["<|im_start|>user\nhello who are y…", "<|im_start|>system\nx<|im_end|>\n<|im_start|>user\n",
            "a<|endoftext|>b", "<|im_end|><|im_end|> <|im_end|>", "<|im_start|", "|im_end|>", " <|im_end|> ",
            "<repo_name>a/b<file_sep>c.py\n"]
    out += SPACES
    for i in range(n_ranges):
        text = ""
        while len(text) < 24:
            low, high = rng.choice(RANGES)
            for _ in range(rng.randint(1, 4)):
                code = rng.randint(low, high)
                text += " " if 0xD800 <= code <= 0xDFFF else chr(code)
            text += rng.choice(["", "", " ", "1", "a"])
        out.append(text)
    for i in range(n_words):
        out.append("".join(rng.choice(WORDS) for _ in range(rng.randint(4, 20))))
    return list(dict.fromkeys(out))


def with_steps(tokenizer, name):
    if name == "smollm":  # as its authors write it
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True),
             pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    else:
        splits = [pre_tokenizers.Split(Regex(step), "isolated") for step in STEPS[name]]
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            splits + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def write(name, head, cases):
    lines = [json.dumps(case, ensure_ascii=True, separators=(",", ":")) for case in cases]
    head = json.dumps(head, ensure_ascii=True, separators=(",", ":"))
    (GOLDEN / name).write_text(head[:-1] + ',"cases":[\n' + ",\n".join(lines) + "\n]}\n")
    print(f"{name}: {len(cases)} cases, {(GOLDEN / name).stat().st_size} bytes")


def record_model(path):
    metadata = Reader(path).metadata
    tokens = metadata["tokenizer.ggml.tokens"]
    types = metadata["tokenizer.ggml.token_type"]
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    vocab = {token: i for i, token in enumerate(tokens)}
    control = [AddedToken(token, special=True, normalized=False)
               for token, kind in zip(tokens, types) if kind == 3]
    plain = with_steps(Tokenizer(models.BPE(vocab=vocab, merges=merges)), "smollm")
    special = with_steps(Tokenizer(models.BPE(vocab=vocab, merges=merges)), "smollm")
    special.add_special_tokens(control)
    cases = []
    for text in texts(n_ranges=90, n_words=50):
        ids = plain.encode(text, add_special_tokens=False).ids
        case = {"text": text, "ids": ids}
        parsed = special.encode(text, add_special_tokens=False).ids
        if parsed != ids:
            case["ids_with_special"] = parsed
        cases.append(case)
    write("tokenizer-smollm2.json",
          {"model": pathlib.Path(path).name, "pre": "smollm",
           "recorded_with": f"tokenizers {tokenizers.__version__}"}, cases)


def record_pre():
    names = list(STEPS)
    corpus = texts(n_ranges=30, n_words=400) * 2
    base = Tokenizer(models.BPE())
    base.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    base.train_from_iterator(corpus, trainers.BpeTrainer(
        vocab_size=700, show_progress=False, max_token_length=8,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    model = json.loads(base.to_str())["model"]
    vocab, merges = model["vocab"], [tuple(merge) for merge in model["merges"]]
    by_name = {name: with_steps(Tokenizer(models.BPE(
        vocab=vocab, merges=merges, ignore_merges=name == "llama-bpe")), name) for name in names}
    cases = []
    for text in texts(n_ranges=20, n_words=60):
        cases.append({"text": text, "ids": [by_name[name].encode(text).ids for name in names]})
    tokens = [token for token, _ in sorted(vocab.items(), key=lambda item: item[1])]
    write("tokenizer-pre.json",
          {"pre": names, "recorded_with": f"tokenizers {tokenizers.__version__}", "tokens": tokens,
           "merges": [" ".join(merge) for merge in merges]}, cases)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    record_model(sys.argv[1])
    record_pre()
