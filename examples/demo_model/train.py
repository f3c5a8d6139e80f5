# SPDX-License-Identifier: MIT
"""Trains the demo model on generated stories. Needs PyTorch (1.13 or newer), on the CPU.

Matrices inside the blocks are updated by orthogonalised momentum (Muon), the embedding and the norms by AdamW. The
learning rate warms up, then follows a cosine over --steps or --minutes, whichever is used up first.
The checkpoint is an .npz file: the parameters in float32, the configuration and the tokenizer as JSON.
"""
import argparse
import json
import math
import time

import numpy as np
import torch

import model
import spm
import stories


def token_stream(tok, split, seed, count):
    """The stories one after the other, each with BOS before and EOS after, and where each of them starts."""
    ids, starts = [], []
    for text in stories.stories(split, seed, count):
        starts.append(len(ids))
        ids += tok.encode(text) + [spm.EOS]
    return np.array(ids, np.int64), np.array(starts)


def row_starts(starts, total, length):
    """Rows begin at a story start; the rest of the story that a row cuts off is skipped."""
    rows, at = [], 0
    while True:
        i = np.searchsorted(starts, at)
        if i >= len(starts) or starts[i] + length + 1 > total:
            return np.array(rows)
        rows.append(starts[i])
        at = starts[i] + length


class Rows:
    """Batches of rows in shuffled order, for ever."""

    def __init__(self, ids, starts, rng):
        self.ids, self.starts, self.rng, self.order, self.length = ids, starts, rng, [], 0

    def next(self, batch, length):
        if len(self.order) < batch or length != self.length:
            self.length = length
            # begin at another story each time, so that the cuts differ
            first = self.rng.integers(0, len(self.starts) // 10)
            self.order = list(self.rng.permutation(row_starts(self.starts[first:], len(self.ids), length)))
        at = [self.order.pop() for _ in range(batch)]
        rows = torch.from_numpy(np.stack([self.ids[a:a + length + 1] for a in at]))
        return rows[:, :-1], rows[:, 1:]


class Muon:
    """Momentum whose update is made orthogonal by a few Newton-Schulz steps."""

    def __init__(self, params, momentum=0.95):
        self.params, self.momentum = list(params), momentum
        self.buffers = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self, lr):
        for p, m in zip(self.params, self.buffers):
            m.lerp_(p.grad, 1 - self.momentum)
            x = p.grad.lerp(m, self.momentum)
            tall = x.shape[0] > x.shape[1]
            x = x.t() if tall else x
            x = x / (x.norm() + 1e-7)
            for _ in range(5):
                a = x @ x.t()
                x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
            x = x.t() if tall else x
            p.mul_(1 - 0.01 * lr).add_(x, alpha=-lr * max(1.0, p.shape[0] / p.shape[1]) ** 0.5)


def save(path, net, config, vocab, info):
    arrays = {k: v.detach().numpy() for k, v in net.named_parameters()}
    np.savez(path, **arrays, meta=np.array(json.dumps({"config": config, "vocab": vocab, "info": info})))


@torch.no_grad()
def validate(net, ids, starts, length, rows):
    rng = np.random.default_rng(0)
    at = rng.permutation(row_starts(starts, len(ids), length))[:rows]
    x = torch.from_numpy(np.stack([ids[a:a + length + 1] for a in at]))
    return sum(net(x[i:i + 1, :-1], x[i:i + 1, 1:]).item() for i in range(len(x))) / len(x)


def main():
    ap = argparse.ArgumentParser(description="train the demo model")
    ap.add_argument("--tokenizer", help="vocabulary (JSON) of a new model")
    ap.add_argument("--start", help="go on from this checkpoint (.npz), with its vocabulary")
    ap.add_argument("--out", required=True, help="checkpoint file (.npz)")
    ap.add_argument("--stories", type=int, default=24000)
    ap.add_argument("--steps", type=int, default=4000)
    ap.add_argument("--minutes", type=float, default=1e9)
    ap.add_argument("--batch-tokens", type=int, default=1600)
    ap.add_argument("--muon-lr", type=float, default=0.02)
    ap.add_argument("--adam-lr", type=float, default=3e-3)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--threads", type=int, default=1)
    args = ap.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    meta, earlier = {"info": {"steps": 0, "tokens": 0, "minutes": 0}}, {}
    if args.start:
        with np.load(args.start) as arrays:
            earlier = {k: torch.from_numpy(arrays[k]) for k in arrays.files if k != "meta"}
            meta = json.loads(str(arrays["meta"]))
    else:
        with open(args.tokenizer) as f:
            meta.update(vocab=json.load(f), config=model.CONFIG)
    vocab = meta["vocab"]
    tok = spm.Tokenizer(vocab["tokens"], vocab["scores"], vocab["types"])
    config = {**meta["config"], "vocab": len(vocab["tokens"])}
    ids, starts = token_stream(tok, "train", args.seed, args.stories)
    held_ids, held_starts = token_stream(tok, "heldout", args.seed, 300)
    print(f"{len(starts)} training stories, {len(ids)} tokens", flush=True)

    net = model.Model(config)
    if earlier:
        net.load_state_dict(earlier)
    inner = [p for n, p in net.named_parameters() if p.dim() == 2 and not n.startswith("embed")]
    outer = [p for n, p in net.named_parameters() if p.dim() == 1 or n.startswith("embed")]
    muon = Muon(inner)
    adam = torch.optim.AdamW(outer, lr=args.adam_lr, betas=(0.9, 0.98), weight_decay=0.0)
    print(f"{sum(p.numel() for p in net.parameters())} parameters", flush=True)
    rows = Rows(ids, starts, np.random.default_rng(args.seed))
    begin, seen, step, losses = time.time(), 0, 0, []
    while True:
        minutes = (time.time() - begin) / 60
        progress = max(step / args.steps, minutes / args.minutes)
        done = progress >= 1
        if step % 100 == 0 or done:
            rate = seen / max(1e-9, minutes * 60)
            left = minutes / max(progress, 1e-9) - minutes
            held = f", held-out {validate(net, held_ids, held_starts, 320, 24):.4f}" if step % 500 == 0 or done else ""
            print(f"step {step}, loss {np.mean(losses[-100:] or [0]):.4f}{held}, {seen} tokens, {rate:.0f} tokens/s, "
                  f"{minutes:.1f} min, {left:.1f} min to go", flush=True)
            if step:
                total = {"steps": step, "tokens": seen, "minutes": round(minutes, 1)}
                save(args.out, net, config, vocab, {k: v + meta["info"][k] for k, v in total.items()})
        if done:
            break
        # the last part uses long rows, so that the whole context has been trained
        length = 320 if progress < 0.85 else config["context"]
        x, y = rows.next(args.batch_tokens // length, length)
        scale = min(1.0, (step + 1) / 40) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))
        loss = net(x, y)
        for p in net.parameters():
            p.grad = None
        loss.backward()
        for group in adam.param_groups:
            group["lr"] = args.adam_lr * scale
        adam.step()
        muon.step(args.muon_lr * scale)
        losses.append(loss.item())
        seen += x.numel()
        step += 1


if __name__ == "__main__":
    main()
