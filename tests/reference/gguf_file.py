"""Reads and writes GGUF files (v2, v3) and converts their number formats; needs only numpy."""

import struct

import numpy as np

# name: (id, weights in a block, bytes of a block)
TYPES = {
    "F32": (0, 1, 4),
    "F16": (1, 1, 2),
    "Q4_0": (2, 32, 18),
    "Q4_1": (3, 32, 20),
    "Q8_0": (8, 32, 34),
    "Q4_K": (12, 256, 144),
    "Q6_K": (14, 256, 210),
    "BF16": (30, 1, 2),
}
TYPE_NAMES = {number: name for name, (number, _, _) in TYPES.items()}

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
VALUE_IDS = {"u32": 4, "i32": 5, "f32": 6, "bool": 7, "str": 8, "arr": 9, "u64": 10}
ALIGNMENT = 32


def dequantize(type_name, raw, shape):
    """The float32 values of `raw` bytes; shape is (rows, cols) or (cols,)."""
    if type_name == "F32":
        return np.frombuffer(raw, "<f4").reshape(shape)
    if type_name == "F16":
        return np.frombuffer(raw, "<f2").astype(np.float32).reshape(shape)
    if type_name == "BF16":
        return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
    blocks = np.frombuffer(raw, np.uint8).reshape(-1, TYPES[type_name][2])
    if type_name == "Q4_K":
        return dequantize_q4_k(blocks).reshape(shape)
    if type_name == "Q6_K":
        return dequantize_q6_k(blocks).reshape(shape)
    scale = blocks[:, :2].copy().view("<f2").astype(np.float32)
    if type_name == "Q8_0":
        return (scale * blocks[:, 2:].view(np.int8)).reshape(shape)
    nibbles = blocks[:, -16:]
    q = np.concatenate([nibbles & 15, nibbles >> 4], axis=1).astype(np.float32)
    if type_name == "Q4_0":
        return (scale * (q - 8)).reshape(shape)
    minimum = blocks[:, 2:4].copy().view("<f2").astype(np.float32)
    return (scale * q + minimum).reshape(shape)


def dequantize_q4_k(blocks):
    """Super-blocks of 8 parts of 32: d * scale * q - dmin * minimum."""
    d, dmin = (blocks[:, i : i + 2].copy().view("<f2").astype(np.float32) for i in (0, 2))
    a, b, c = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    scale = np.concatenate([a & 63, c & 15 | a >> 6 << 4], axis=1) * d
    minimum = np.concatenate([b & 63, c >> 4 | b >> 6 << 4], axis=1) * dmin
    pairs = blocks[:, 16:].reshape(-1, 4, 1, 32)
    q = np.concatenate([pairs & 15, pairs >> 4], axis=2).reshape(-1, 8, 32)
    return scale[:, :, None] * q - minimum[:, :, None]


def dequantize_q6_k(blocks):
    """Super-blocks of 16 parts of 16: d * scale * (q - 32)."""
    d = blocks[:, 208:].copy().view("<f2").astype(np.float32)
    scale = blocks[:, 192:208].view(np.int8) * d
    low = blocks[:, :128].reshape(-1, 2, 64)
    low = np.concatenate([low & 15, low >> 4], axis=2)
    high = blocks[:, 128:192].reshape(-1, 2, 32)
    high = np.concatenate([high >> shift & 3 for shift in (0, 2, 4, 6)], axis=2)
    q = (low | high << 4).reshape(-1, 16, 16).astype(np.float32) - 32
    return scale[:, :, None] * q


def quantize(type_name, values):
    """The bytes of a float32 array in a format; the last dimension is the contiguous one."""
    values = np.ascontiguousarray(values, np.float32)
    if type_name == "F32":
        return values.astype("<f4").tobytes()
    if type_name == "F16":
        return values.astype("<f2").tobytes()
    if type_name == "BF16":
        bits = values.view(np.uint32).astype(np.uint64)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()
    if type_name == "Q4_K":
        return quantize_q4_k(values.reshape(-1, 8, 32))
    if type_name == "Q6_K":
        return quantize_q6_k(values.reshape(-1, 16, 16))
    x = values.reshape(-1, 32)
    if type_name == "Q8_0":
        scale = half(np.abs(x).max(axis=1, keepdims=True) / 127)
        q = np.clip(np.rint(divide(x, scale)), -127, 127).astype(np.int8)
        return np.concatenate([to_bytes(scale), q.view(np.uint8)], axis=1).tobytes()
    if type_name == "Q4_0":
        extreme = np.take_along_axis(x, np.abs(x).argmax(axis=1)[:, None], axis=1)
        scale = half(extreme / -8)
        q = np.clip(np.rint(divide(x, scale)) + 8, 0, 15).astype(np.uint8)
        return np.concatenate([to_bytes(scale), pack_nibbles(q)], axis=1).tobytes()
    assert type_name == "Q4_1", type_name
    low = half(x.min(axis=1, keepdims=True))
    scale = half((x.max(axis=1, keepdims=True) - low) / 15)
    q = np.clip(np.rint(divide(x - low, scale)), 0, 15).astype(np.uint8)
    return np.concatenate([to_bytes(scale), to_bytes(low), pack_nibbles(q)], axis=1).tobytes()


def quantize_q4_k(x):
    low = -np.minimum(x.min(axis=2), 0)
    step = (np.maximum(x.max(axis=2), 0) + low) / 15
    d, dmin = (half(v.max(axis=1, keepdims=True) / 63) for v in (step, low))
    scale, minimum = (np.clip(np.rint(divide(*v)), 0, 63) for v in ((step, d), (low, dmin)))
    offset = (minimum * dmin)[:, :, None]
    q = np.clip(np.rint(divide(x + offset, (scale * d)[:, :, None] + 0 * x)), 0, 15)
    q = q.astype(np.uint8).reshape(-1, 4, 2, 32)
    s, m = scale.astype(np.uint8), minimum.astype(np.uint8)
    packed = [s[:, :4] | s[:, 4:] >> 4 << 6, m[:, :4] | m[:, 4:] >> 4 << 6,
              s[:, 4:] & 15 | (m[:, 4:] & 15) << 4]
    nibbles = (q[:, :, 0] | q[:, :, 1] << 4).reshape(-1, 128)
    return np.concatenate([to_bytes(d), to_bytes(dmin), *packed, nibbles], axis=1).tobytes()


def quantize_q6_k(x):
    extreme = np.take_along_axis(x, np.abs(x).argmax(axis=2)[:, :, None], axis=2)[:, :, 0]
    step = extreme / -32
    d = half(np.abs(step).max(axis=1, keepdims=True) / 127)
    scale = np.clip(np.rint(divide(step, d)), -127, 127)
    q = np.clip(np.rint(divide(x, (scale * d)[:, :, None] + 0 * x)), -32, 31) + 32
    q = q.astype(np.uint8).reshape(-1, 2, 128)
    low = (q[:, :, :64] & 15 | (q[:, :, 64:] & 15) << 4).reshape(-1, 128)
    high = sum((q[:, :, i * 32 : i * 32 + 32] >> 4) << 2 * i for i in range(4)).reshape(-1, 64)
    scales = scale.astype(np.int8).view(np.uint8)
    return np.concatenate([low, high.astype(np.uint8), scales, to_bytes(d)], axis=1).tobytes()


def half(x):
    return x.astype("<f2").astype(np.float32)


def divide(x, scale):
    return np.divide(x, scale, out=np.zeros_like(x), where=scale != 0)


def to_bytes(scale):
    return scale.astype("<f2").view(np.uint8)


def pack_nibbles(q):
    return q[:, :16] | (q[:, 16:] << 4)


class Reader:
    """Metadata in `metadata`; tensors by name as (type name, shape with rows first, raw bytes)."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.at = 0
        magic, version, tensor_count, metadata_count = self.unpack("4sIQQ")
        assert magic == b"GGUF" and version in (2, 3), (magic, version)
        self.metadata = {}
        for _ in range(metadata_count):
            key = self.string()
            self.metadata[key] = self.value(self.unpack("I")[0])
        table = []
        for _ in range(tensor_count):
            name = self.string()
            dims = self.unpack("%dQ" % self.unpack("I")[0])
            table.append((name, dims, *self.unpack("IQ")))
        alignment = self.metadata.get("general.alignment", ALIGNMENT)
        start = -(-self.at // alignment) * alignment
        self.tensors = {}
        for name, dims, type_id, offset in table:
            type_name = TYPE_NAMES[type_id]
            _, weights, size = TYPES[type_name]
            count = int(np.prod(dims)) // weights * size
            raw = self.data[start + offset : start + offset + count]
            self.tensors[name] = (type_name, tuple(reversed(dims)), raw)

    def unpack(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def string(self):
        size = self.unpack("Q")[0]
        self.at += size
        return self.data[self.at - size : self.at].decode("utf-8")

    def value(self, kind):
        if kind == VALUE_IDS["str"]:
            return self.string()
        if kind == VALUE_IDS["arr"]:
            kind, count = self.unpack("IQ")
            if kind in SCALARS:
                return list(self.unpack("%d%s" % (count, SCALARS[kind])))
            return [self.value(kind) for _ in range(count)]
        return self.unpack(SCALARS[kind])[0]

    def tensor(self, name):
        type_name, shape, raw = self.tensors[name]
        return dequantize(type_name, raw, shape)


def write(path, version, metadata, tensors):
    """metadata: key -> (kind, value), kind "arr:KIND" for lists; tensors: name -> (type, array)."""
    out = bytearray(struct.pack("<4sIQQ", b"GGUF", version, len(tensors), len(metadata)))

    def string(text):
        encoded = text.encode("utf-8")
        return struct.pack("<Q", len(encoded)) + encoded

    def scalar(kind, value):
        if kind == "str":
            return string(value)
        return struct.pack("<" + SCALARS[VALUE_IDS[kind]], value)

    for key, (kind, value) in metadata.items():
        out += string(key)
        if kind.startswith("arr:"):
            kind = kind[4:]
            out += struct.pack("<IIQ", VALUE_IDS["arr"], VALUE_IDS[kind], len(value))
            out += b"".join(scalar(kind, item) for item in value)
        else:
            out += struct.pack("<I", VALUE_IDS[kind]) + scalar(kind, value)

    data = bytearray()
    for name, (type_name, array) in tensors.items():
        out += string(name) + struct.pack("<I", array.ndim)
        out += struct.pack("<%dQ" % array.ndim, *reversed(array.shape))
        assert array.shape[-1] % TYPES[type_name][1] == 0, (name, type_name, array.shape)
        out += struct.pack("<IQ", TYPES[type_name][0], len(data))
        data += quantize(type_name, array)
        data += bytes(-len(data) % ALIGNMENT)
    out += bytes(-len(out) % ALIGNMENT)
    with open(path, "wb") as file:
        file.write(out + data)
