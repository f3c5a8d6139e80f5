# SPDX-License-Identifier: MIT
"""Writes a checkpoint of train.py as a GGUF file, with matrices in Q8_0 (the bundled file) or in F32."""
import argparse
import json
import os

import numpy as np

import gguf_io as gguf

NAMES = {"attn_norm": "attn_norm", "q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output",
         "ffn_norm": "ffn_norm", "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}
FILE_TYPE = {"f32": 0, "q8_0": 7}


def metadata(config, vocab, kind):
    return [
        ("general.architecture", gguf.STRING, "llama"),
        ("general.name", gguf.STRING, "kvasir-demo-stories"),
        ("general.license", gguf.STRING, "MIT"),
        ("general.file_type", gguf.U32, FILE_TYPE[kind]),
        ("general.quantization_version", gguf.U32, 2),
        ("general.alignment", gguf.U32, gguf.ALIGNMENT),
        ("llama.block_count", gguf.U32, config["layers"]),
        ("llama.context_length", gguf.U32, config["context"]),
        ("llama.embedding_length", gguf.U32, config["dim"]),
        ("llama.feed_forward_length", gguf.U32, config["ffn"]),
        ("llama.attention.head_count", gguf.U32, config["heads"]),
        ("llama.attention.head_count_kv", gguf.U32, config["kv_heads"]),
        ("llama.attention.layer_norm_rms_epsilon", gguf.FLOAT, config["eps"]),
        ("llama.rope.dimension_count", gguf.U32, config["dim"] // config["heads"]),
        ("llama.rope.freq_base", gguf.FLOAT, config["rope_base"]),
        ("llama.vocab_size", gguf.U32, config["vocab"]),
        ("tokenizer.ggml.model", gguf.STRING, "llama"),
        ("tokenizer.ggml.tokens", gguf.ARRAY, (gguf.STRING, vocab["tokens"])),
        ("tokenizer.ggml.scores", gguf.ARRAY, (gguf.FLOAT, vocab["scores"])),
        ("tokenizer.ggml.token_type", gguf.ARRAY, (gguf.I32, vocab["types"])),
        ("tokenizer.ggml.bos_token_id", gguf.U32, 1),
        ("tokenizer.ggml.eos_token_id", gguf.U32, 2),
        ("tokenizer.ggml.unknown_token_id", gguf.U32, 0),
        ("tokenizer.ggml.add_bos_token", gguf.BOOL, True),
        ("tokenizer.ggml.add_eos_token", gguf.BOOL, False),
        ("tokenizer.ggml.add_space_prefix", gguf.BOOL, True),
    ]


def tensors(arrays, config, kind):
    matrix = gguf.Q8_0 if kind == "q8_0" else gguf.F32
    yield "token_embd.weight", arrays["embed.weight"], matrix          # also the output matrix (tied)
    for n in range(config["layers"]):
        for ours, name in NAMES.items():
            a = arrays[f"blocks.{n}.{ours}.weight"]
            yield f"blk.{n}.{name}.weight", a, matrix if a.ndim == 2 else gguf.F32
    yield "output_norm.weight", arrays["norm.weight"], gguf.F32


def main():
    ap = argparse.ArgumentParser(description="write a checkpoint as GGUF")
    ap.add_argument("checkpoint")
    ap.add_argument("out")
    ap.add_argument("--type", choices=sorted(FILE_TYPE), default="q8_0")
    args = ap.parse_args()
    with np.load(args.checkpoint) as arrays:
        meta = json.loads(str(arrays["meta"]))
        config = meta["config"]
        gguf.write(args.out, metadata(config, meta["vocab"], args.type), list(tensors(arrays, config, args.type)))
    print(f"{args.out}: {os.path.getsize(args.out)} bytes; trained for {meta['info']}")


if __name__ == "__main__":
    main()
