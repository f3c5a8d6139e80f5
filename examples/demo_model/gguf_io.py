# SPDX-License-Identifier: MIT
"""A small GGUF version 3 writer and reader for the tensor types F32 and Q8_0. Needs numpy only."""
import struct

import numpy as np

F32, Q8_0 = 0, 8
ALIGNMENT = 32
U32, I32, FLOAT, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", U32: "I", I32: "i", FLOAT: "f", BOOL: "?", 10: "Q", 11: "q", 12: "d"}


def quantize_q8_0(a):
    """Blocks of 32 along the rows: a half-precision scale d = amax / 127, then 32 signed bytes."""
    blocks = np.ascontiguousarray(a, np.float32).reshape(-1, 32)
    d = np.abs(blocks).max(1) / np.float32(127)
    inverse = np.divide(1.0, d, out=np.zeros_like(d), where=d > 0)
    q = blocks * inverse[:, None]
    q = np.trunc(q + np.copysign(np.float32(0.5), q)).astype(np.int8)          # halves away from zero
    out = np.empty(len(blocks), dtype=[("d", "<f2"), ("q", "i1", 32)])
    out["d"], out["q"] = d.astype(np.float16), q
    return out.tobytes()


def dequantize_q8_0(data, count):
    blocks = np.frombuffer(data, dtype=[("d", "<f2"), ("q", "i1", 32)], count=count // 32)
    return (blocks["d"].astype(np.float32)[:, None] * blocks["q"].astype(np.float32)).reshape(-1)


def pack_string(s):
    raw = s.encode("utf-8")
    return struct.pack("<Q", len(raw)) + raw


def pack_value(kind, value):
    if kind == STRING:
        return pack_string(value)
    if kind == ARRAY:
        item, items = value
        return struct.pack("<IQ", item, len(items)) + b"".join(pack_value(item, v) for v in items)
    return struct.pack("<" + SCALARS[kind], value)


def write(path, metadata, tensors):
    """metadata: list of (key, kind, value); tensors: list of (name, array [rows, columns] or [n], type)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, kind, value in metadata:
        head += pack_string(key) + struct.pack("<I", kind) + pack_value(kind, value)
    blobs, offset = [], 0
    for name, a, kind in tensors:
        blob = quantize_q8_0(a) if kind == Q8_0 else np.ascontiguousarray(a, "<f4").tobytes()
        blob += bytes(-len(blob) % ALIGNMENT)
        dims = a.shape[::-1]                                   # the fastest dimension first
        head += pack_string(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
        head += struct.pack("<IQ", kind, offset)
        blobs.append(blob)
        offset += len(blob)
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % ALIGNMENT) + b"".join(blobs))


class Reader:
    """Reads a whole file: .metadata (key to value) and .tensors (name to float32 array)."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.at = 4
        if self.data[:4] != b"GGUF" or self.scalar("I") != 3:
            raise ValueError("not a GGUF version 3 file")
        tensor_count, key_count = self.scalar("Q"), self.scalar("Q")
        self.metadata = {}
        for _ in range(key_count):
            key = self.string()
            self.metadata[key] = self.value(self.scalar("I"))
        infos = []
        for _ in range(tensor_count):
            name = self.string()
            dims = [self.scalar("Q") for _ in range(self.scalar("I"))]
            infos.append((name, dims[::-1], self.scalar("I"), self.scalar("Q")))
        alignment = self.metadata.get("general.alignment", ALIGNMENT)
        base = self.at + -self.at % alignment
        self.tensors = {}
        for name, shape, kind, offset in infos:
            count = int(np.prod(shape))
            raw = self.data[base + offset:]
            if kind == Q8_0:
                flat = dequantize_q8_0(raw, count)
            elif kind == F32:
                flat = np.frombuffer(raw, "<f4", count)
            else:
                raise ValueError(f"tensor type {kind} is not supported here")
            self.tensors[name] = flat.reshape(shape)

    def scalar(self, code):
        value = struct.unpack_from("<" + code, self.data, self.at)[0]
        self.at += struct.calcsize("<" + code)
        return value

    def string(self):
        size = self.scalar("Q")
        self.at += size
        return self.data[self.at - size:self.at].decode("utf-8")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            item, count = self.scalar("I"), self.scalar("Q")
            return [self.value(item) for _ in range(count)]
        return self.scalar(SCALARS[kind])
