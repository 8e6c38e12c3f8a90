"""Compares the reference with llama.cpp on the models of tests/models.

    python compare_llama_cpp.py PROGRAM     # PROGRAM is the compiled llama_cpp_logits.cpp

Each model is compared as it is (llama.cpp rounds activations to 8 bits before a product with block
formats, so there the two differ) and rewritten with its dequantized weights as F32.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import make_tiny_models
from gguf_file import Reader, write
from llama_reference import Llama

MODELS = Path(__file__).resolve().parent.parent / "models"


def llama_cpp(program, path, ids):
    run = subprocess.run([program, path, *map(str, ids)], capture_output=True, text=True)
    if run.returncode != 0:
        return None
    return np.array([line.split() for line in run.stdout.splitlines()], np.float64)


def as_f32(path, shape, target):
    reader = Reader(path)
    metadata = make_tiny_models.model_metadata(path.stem, shape)
    metadata |= make_tiny_models.tokenizer_metadata(shape)
    write(target, 3, metadata, {n: ("F32", reader.tensor(n)) for n in reader.tensors})


def difference(ours, theirs):
    return "not loaded" if theirs is None else "%.1e" % np.abs(ours - theirs).max()


def main(program):
    ids = np.random.Generator(np.random.PCG64(7)).integers(0, 290, 80).tolist()
    print("largest difference of a logit over 80 positions")
    print("%-20s %12s %12s %14s" % ("model", "as it is", "as F32", "logits' std"))
    for name, shape in make_tiny_models.MODELS.items():
        path = MODELS / (name + ".gguf")
        ours = Llama(path).logits(ids)
        with tempfile.NamedTemporaryFile(suffix=".gguf") as plain:
            as_f32(path, shape, plain.name)
            row = [difference(ours, llama_cpp(program, p, ids)) for p in (path, plain.name)]
        print("%-20s %12s %12s %14.2f" % (name, *row, ours.std()))


if __name__ == "__main__":
    main(sys.argv[1])
