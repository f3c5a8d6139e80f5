# SPDX-License-Identifier: MIT
"""Trains the vocabulary of the demo model: byte-pair merges over generated stories, kept in SentencePiece form.

Each merge adds the most frequent adjacent pair; then every word that holds the new piece is cut again with the greedy
algorithm of the inference side (spm.merge_greedily), so both always agree.
"""
import argparse
import collections
import json

import spm
import stories

# Characters that are pieces of their own even when no story has them (the rest goes through the byte tokens).
CHARS = spm.SPACE + "etaoinhsrdlumwygcfbpkvxqjz" + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + ".,!?'\"-:;" + "0123456789"


def train(texts, size):
    counts = collections.Counter()
    for text in texts:
        for word in spm.split_words(spm.SPACE + text.replace(" ", spm.SPACE)):
            # letters and punctuation are never joined in one piece
            for part in split_classes(word):
                counts[part] += 1
    counts.pop("\n", None)
    words = list(counts)
    cut = [list(w) for w in words]
    pairs, where = collections.Counter(), collections.defaultdict(set)

    def count(i, sign):
        for a, b in zip(cut[i], cut[i][1:]):
            pairs[a + b] += sign * counts[words[i]]
            where[a + b].add(i)

    for i in range(len(words)):
        count(i, 1)
    merges, score = [], {}
    while 259 + len(CHARS) + len(merges) < size:
        piece = min(pairs, key=lambda p: (-pairs[p], p))
        score[piece] = -float(len(merges))
        merges.append(piece)
        for i in sorted(where[piece]):
            if piece in words[i]:
                count(i, -1)
                cut[i] = spm.merge_greedily(words[i], score)
                count(i, 1)
        del pairs[piece]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + merges + list(CHARS)
    scores = [0.0] * 259 + [-float(i) for i in range(len(merges) + len(CHARS))]
    types = [spm.TYPE_UNKNOWN, spm.TYPE_CONTROL, spm.TYPE_CONTROL] + [spm.TYPE_BYTE] * 256
    types += [spm.TYPE_NORMAL] * (len(tokens) - 259)
    return tokens, scores, types, {w: c for w, c in zip(words, cut)}


def split_classes(word):
    parts = [word[0]]
    for a, b in zip(word, word[1:]):
        letter = [c.isalpha() or c in spm.SPACE + "'" for c in (a, b)]
        if letter[0] == letter[1] or a == spm.SPACE:
            parts[-1] += b
        else:
            parts.append(b)
    return parts


def main():
    ap = argparse.ArgumentParser(description="train the vocabulary")
    ap.add_argument("--size", type=int, default=1024)
    ap.add_argument("--stories", type=int, default=20000)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    texts = list(stories.stories("train", 0, args.stories))
    tokens, scores, types, cut = train(texts, args.size)
    tok = spm.Tokenizer(tokens, scores, types)
    for word, pieces in cut.items():
        assert [tokens[i] for i in tok.encode_word(word)] == pieces, word
    ids = [tok.encode(t) for t in texts[:2000]]
    for t, i in zip(texts, ids):
        assert tok.decode(i) == t
    lengths = sorted(map(len, ids))
    print(f"{len(tokens)} tokens; {sum(map(len, texts[:2000])) / sum(lengths):.2f} characters per token; "
          f"story length: median {lengths[len(lengths) // 2]}, longest {lengths[-1]} tokens")
    with open(args.out, "w") as f:
        json.dump({"tokens": tokens, "scores": scores, "types": types}, f)


if __name__ == "__main__":
    main()
