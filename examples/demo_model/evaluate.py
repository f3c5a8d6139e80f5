# SPDX-License-Identifier: MIT
"""Evaluates the GGUF file with a plain double-precision forward pass (numpy only) and writes golden test data.

  python3 evaluate.py demo.gguf --golden expected.json     perplexities and greedy continuations, as JSON
  python3 evaluate.py demo.gguf --prompt "One day" --temperature 0.7 --seed 1
"""
import argparse
import json
import math

import numpy as np

import gguf_io
import spm
import stories

PROMPTS = ["Once upon a time", "One day, a little fox named Tim", "Lily had a red ball.",
           "The old dog sat by the door and waited for", "\"I am so hungry,\" said the bear.",
           "There was a tiny dragon who was afraid of the dark"]
STEPS = 48


class Model:
    def __init__(self, path):
        reader = gguf_io.Reader(path)
        self.meta = m = reader.metadata
        self.w = {name: a.astype(np.float64) for name, a in reader.tensors.items()}
        self.layers, self.context = m["llama.block_count"], m["llama.context_length"]
        self.heads, self.kv_heads = m["llama.attention.head_count"], m["llama.attention.head_count_kv"]
        self.head_dim = m["llama.embedding_length"] // self.heads
        self.eps = m["llama.attention.layer_norm_rms_epsilon"]
        self.tokenizer = spm.Tokenizer(*(m["tokenizer.ggml." + k] for k in ("tokens", "scores", "token_type")))
        self.output = self.w.get("output.weight", self.w["token_embd.weight"])
        half = np.arange(0, self.head_dim, 2, dtype=np.float64)
        self.freq = m.get("llama.rope.freq_base", 10000.0) ** (-half / self.head_dim)

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * self.w[name]

    def rope(self, x, positions):
        """x: [tokens, heads, head_dim]; turns the pairs (2i, 2i + 1)."""
        angle = positions[:, None, None] * self.freq
        a, b, out = x[..., 0::2], x[..., 1::2], np.empty_like(x)
        out[..., 0::2] = a * np.cos(angle) - b * np.sin(angle)
        out[..., 1::2] = a * np.sin(angle) + b * np.cos(angle)
        return out

    def forward(self, ids, cache=None):
        """Logits [tokens, vocabulary] of ids, which follow the tokens in cache (a list of [keys, values] per layer)."""
        cache = [] if cache is None else cache
        past = len(cache[0][0]) if cache else 0
        n, hd = len(ids), self.head_dim
        positions = np.arange(past, past + n, dtype=np.float64)
        hidden = np.arange(past + n)[None, :] > positions[:, None]
        x = self.w["token_embd.weight"][ids]
        for layer in range(self.layers):
            p = f"blk.{layer}."
            y = self.norm(x, p + "attn_norm.weight")
            q = self.rope((y @ self.w[p + "attn_q.weight"].T).reshape(n, self.heads, hd), positions)
            k = self.rope((y @ self.w[p + "attn_k.weight"].T).reshape(n, self.kv_heads, hd), positions)
            v = (y @ self.w[p + "attn_v.weight"].T).reshape(n, self.kv_heads, hd)
            if len(cache) <= layer:
                cache.append([k, v])
            else:
                k, v = (np.concatenate(pair) for pair in zip(cache[layer], (k, v)))
                cache[layer] = [k, v]
            out = np.empty((n, self.heads, hd))
            for h in range(self.heads):
                g = h // (self.heads // self.kv_heads)
                s = q[:, h] @ k[:, g].T / math.sqrt(hd)
                s[hidden] = -np.inf
                s = np.exp(s - s.max(1, keepdims=True))
                out[:, h] = s / s.sum(1, keepdims=True) @ v[:, g]
            x = x + out.reshape(n, -1) @ self.w[p + "attn_output.weight"].T
            y = self.norm(x, p + "ffn_norm.weight")
            gate = y @ self.w[p + "ffn_gate.weight"].T
            y = gate / (1 + np.exp(-gate)) * (y @ self.w[p + "ffn_up.weight"].T)
            x = x + y @ self.w[p + "ffn_down.weight"].T
        return self.norm(x, "output_norm.weight") @ self.output.T

    def generate(self, ids, steps, pick):
        """Up to steps tokens after ids; pick chooses a token from a row of logits. Stops after EOS."""
        cache, out = [], []
        row = self.forward(ids, cache)[-1]
        while len(out) < steps and len(ids) + len(out) < self.context:
            out.append(pick(row))
            if out[-1] == spm.EOS:
                break
            row = self.forward([out[-1]], cache)[-1]
        return out


def perplexity(model, split, seed, count):
    """Each story by itself: BOS, the text, EOS; all tokens after BOS are scored."""
    total, tokens, chars = 0.0, 0, 0
    for text in stories.stories(split, seed, count):
        ids = model.tokenizer.encode(text) + [spm.EOS]
        logits = model.forward(ids[:-1])
        top = logits.max(1)
        logsum = top + np.log(np.exp(logits - top[:, None]).sum(1))
        total += float((logsum - logits[np.arange(len(ids) - 1), ids[1:]]).sum())
        tokens += len(ids) - 1
        chars += len(text)
    return {"split": split, "seed": seed, "stories": count, "tokens": tokens, "characters": chars,
            "perplexity": round(math.exp(total / tokens), 6), "mean_nll": round(total / tokens, 8)}


def golden(model, prompt):
    ids = model.tokenizer.encode(prompt)
    last = model.forward(ids)[-1]
    top5 = [int(i) for i in np.argsort(-last, kind="stable")[:5]]
    gaps = []

    def pick(row):
        first, second = np.argsort(-row, kind="stable")[:2]
        gaps.append(round(float(row[first] - row[second]), 6))
        return int(first)

    greedy = model.generate(ids, STEPS, pick)
    return {"prompt": prompt, "prompt_ids": ids, "top5": [[i, round(float(last[i]), 6)] for i in top5],
            "greedy": greedy, "greedy_gap": gaps, "min_gap": min(gaps), "text": model.tokenizer.decode(ids + greedy)}


def main():
    ap = argparse.ArgumentParser(description="evaluate the demo model")
    ap.add_argument("model")
    ap.add_argument("--golden", metavar="FILE", help="write the golden test data to FILE")
    ap.add_argument("--stories", type=int, default=200, help="stories per perplexity figure")
    ap.add_argument("--prompt", help="print one continuation")
    ap.add_argument("--temperature", type=float, default=0.0)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--steps", type=int, default=400)
    args = ap.parse_args()
    model = Model(args.model)
    if args.prompt is not None:
        rng = np.random.default_rng(args.seed)

        def pick(row):
            if args.temperature <= 0:
                return int(row.argmax())
            p = np.exp((row - row.max()) / args.temperature)
            return int(rng.choice(len(p), p=p / p.sum()))

        ids = model.tokenizer.encode(args.prompt)
        print(model.tokenizer.decode(ids + model.generate(ids, args.steps, pick)))
        return
    result = {"model": "kvasir-demo-stories", "forward": "float64 over dequantised weights",
              "heldout": perplexity(model, "heldout", 1000, args.stories),
              "train_distribution": perplexity(model, "train", 1000, args.stories)}
    print(json.dumps(result, indent=1))
    if args.golden:
        result["prompts"] = [golden(model, p) for p in PROMPTS]
        with open(args.golden, "w") as f:
            json.dump(result, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    main()
