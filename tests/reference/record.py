"""Records what the reference computes, for the tests in C++.

    python record.py tiny      # tests/golden/tiny/NAME.json for every model of tests/models
    python record.py default   # tests/golden/smollm2-more.json, from the default model (minutes)
"""

import json
import sys
from pathlib import Path

import numpy as np

import llama_reference
from llama_reference import Llama
from prompts import PROMPTS, TINY_TEXTS
from tokenizer_reference import ReferenceTokenizer

TESTS = Path(__file__).resolve().parent.parent
DEFAULT_MODEL = TESTS.parent / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"


def write_json(path, value, indent=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, indent=indent) + "\n", encoding="utf-8")
    print("%8d bytes  %s" % (path.stat().st_size, path))


def tiny_case(model, text, ids, positions):
    logits = model.logits(ids)
    rows = [{"position": p, "logits": np.round(logits[p], 5).tolist()} for p in positions]
    tokens, gaps = model.greedy(ids, 8)
    case = {"ids": ids, "rows": rows, "greedy": tokens, "gap": gaps}
    return case if text is None else {"text": text} | case


def record_tiny():
    for path in sorted((TESTS / "models").glob("*.gguf")):
        model = Llama(path)
        tokenizer = ReferenceTokenizer(model.reader.metadata)
        rng = np.random.Generator(np.random.PCG64(7))
        cases = []
        for text in TINY_TEXTS:
            ids = tokenizer.encode(text)
            cases.append(tiny_case(model, text, ids, [len(ids) - 1]))
        # Lengths around the KV block of 32 tokens, and one past two blocks.
        for count, positions in ((1, [0]), (33, [15, 31, 32]), (80, [32, 63, 79])):
            ids = rng.integers(0, len(model.output), count).tolist()
            cases.append(tiny_case(model, None, ids, positions))
        ids = rng.integers(0, len(model.output), 200).tolist()
        write_json(
            TESTS / "golden" / "tiny" / (path.stem + ".json"),
            {"model": path.name, "cases": cases,
             "nll": {"ids": ids, "mean_nll": round(model.mean_nll(ids), 6)}},
        )


def record_default():
    model = Llama(DEFAULT_MODEL)
    tokenizer = ReferenceTokenizer(model.reader.metadata)
    cases = []
    for text in PROMPTS:
        ids = tokenizer.encode(text)
        best = [[i, round(p, 6)] for i, p in llama_reference.top(model.logits(ids)[-1], 10)]
        tokens, gaps = model.greedy(ids, 16)
        cases.append({"text": text, "ids": ids, "top": best, "greedy": tokens, "gap": gaps})
        print(len(ids), repr(text[:60]), min(gaps), flush=True)
    text = (TESTS / "data" / "text-2000.txt").read_text(encoding="utf-8")
    ids = tokenizer.encode(text)
    nll = {"file": "tests/data/text-2000.txt", "tokens": len(ids), "ids": ids,
           "mean_nll": round(model.mean_nll(ids), 6)}
    write_json(TESTS / "golden" / "smollm2-more.json", {"cases": cases, "nll": nll})


if __name__ == "__main__":
    {"tiny": record_tiny, "default": record_default}[sys.argv[1]]()
