# SPDX-License-Identifier: MIT
"""The demo model in PyTorch: Llama family with RMSNorm, interleaved RoPE, grouped heads, SwiGLU and a tied output."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

CONFIG = {"dim": 128, "layers": 6, "heads": 4, "kv_heads": 2, "ffn": 384, "vocab": 1024, "context": 512,
          "eps": 1e-5, "rope_base": 10000.0}

CHUNK = 64      # queries per step of the attention


class RMSNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps) * self.weight


def rope_tables(length, head_dim, base):
    """cos and sin [length, head_dim], and the matrix that turns (a, b) of each pair (2i, 2i+1) into (-b, a)."""
    angle = torch.arange(length)[:, None] * base ** (-torch.arange(0, head_dim, 2) / head_dim)[None, :]
    turn = torch.zeros(head_dim, head_dim)
    for i in range(0, head_dim, 2):
        turn[i + 1, i], turn[i, i + 1] = -1.0, 1.0
    return angle.cos().repeat_interleave(2, 1), angle.sin().repeat_interleave(2, 1), turn


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        d, self.h, self.kv, self.hd = c["dim"], c["heads"], c["kv_heads"], c["dim"] // c["heads"]
        self.attn_norm, self.ffn_norm = RMSNorm(d, c["eps"]), RMSNorm(d, c["eps"])
        self.q = nn.Linear(d, self.h * self.hd, bias=False)
        self.k = nn.Linear(d, self.kv * self.hd, bias=False)
        self.v = nn.Linear(d, self.kv * self.hd, bias=False)
        self.o = nn.Linear(self.h * self.hd, d, bias=False)
        self.gate = nn.Linear(d, c["ffn"], bias=False)
        self.up = nn.Linear(d, c["ffn"], bias=False)
        self.down = nn.Linear(c["ffn"], d, bias=False)

    def attend(self, q, k, v, mask):
        """Causal attention in chunks of queries, each with just the keys up to its end."""
        b, _, t, hd = q.shape
        group, c = self.h // self.kv, mask.shape[-1]
        q = q.reshape(b * self.kv, group, t, hd)      # the query heads of a group share a key and value head
        k, v = k.reshape(b * self.kv, t, hd), v.reshape(b * self.kv, t, hd)
        out = []
        for start in range(0, t, c):
            end = min(start + c, t)
            rows = q[:, :, start:end].reshape(b * self.kv, group * (end - start), hd)
            att = torch.bmm(rows, k[:, :end].transpose(1, 2)).view(b * self.kv, group, end - start, end)
            own = att[..., start:] + mask[:end - start, :end - start]
            att = torch.cat((att[..., :start], own), -1).softmax(-1).view(b * self.kv, -1, end)
            out.append(torch.bmm(att, v[:, :end]).view(b, self.h, end - start, hd))
        return torch.cat(out, 2)

    def forward(self, x, cos, sin, turn, mask):
        b, t, d = x.shape
        y = self.attn_norm(x)
        q = self.q(y).view(b, t, self.h, self.hd).transpose(1, 2)
        k = self.k(y).view(b, t, self.kv, self.hd).transpose(1, 2)
        v = self.v(y).view(b, t, self.kv, self.hd).transpose(1, 2)
        q = (q * cos + (q @ turn) * sin) * (1.0 / math.sqrt(self.hd))
        k = k * cos + (k @ turn) * sin
        y = self.attend(q, k, v, mask).transpose(1, 2).reshape(b, t, d)
        x = x + self.o(y)
        y = self.ffn_norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embed = nn.Embedding(c["vocab"], c["dim"])
        self.blocks = nn.ModuleList(Block(c) for _ in range(c["layers"]))
        self.norm = RMSNorm(c["dim"], c["eps"])
        self.tables = {}
        for name, p in self.named_parameters():
            if p.dim() == 2:
                std = 0.05 if name.startswith("embed") else c["dim"] ** -0.5
                if name.endswith(("o.weight", "down.weight")):
                    std *= (2 * c["layers"]) ** -0.5
                nn.init.normal_(p, std=std)

    def forward(self, ids, targets=None):
        t = ids.shape[1]
        if t not in self.tables:
            hd = self.c["dim"] // self.c["heads"]
            mask = torch.full((CHUNK, CHUNK), float("-inf")).triu(1)
            self.tables[t] = rope_tables(t, hd, self.c["rope_base"]) + (mask,)
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, *self.tables[t])
        logits = F.linear(self.norm(x), self.embed.weight)
        if targets is None:
            return logits
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))
