# SPDX-License-Identifier: MIT
"""The "llama" (SentencePiece BPE) tokenizer: greedy merges by score, byte fallback. Pure Python."""

SPACE = "\u2581"
UNK, BOS, EOS = 0, 1, 2
TYPE_NORMAL, TYPE_UNKNOWN, TYPE_CONTROL, TYPE_BYTE = 1, 2, 3, 6


def merge_greedily(symbols, score):
    """Joins the adjacent pair whose joined text has the highest score, the leftmost of equals, until none is left."""
    symbols = list(symbols)
    while len(symbols) > 1:
        best, at = None, -1
        for i in range(len(symbols) - 1):
            s = score.get(symbols[i] + symbols[i + 1])
            if s is not None and (best is None or s > best):
                best, at = s, i
        if at < 0:
            break
        symbols[at:at + 2] = [symbols[at] + symbols[at + 1]]
    return symbols


class Tokenizer:
    def __init__(self, tokens, scores, types):
        self.tokens, self.scores, self.types = tokens, scores, types
        self.ids = {t: i for i, t in enumerate(tokens)}
        self.score = {t: s for t, s, k in zip(tokens, scores, types) if k == TYPE_NORMAL}
        self.cache = {}

    def encode_word(self, word):
        """Pieces never hold an inner space mark, so words that begin with one can be encoded one by one."""
        if word not in self.cache:
            out = []
            for piece in merge_greedily(word, self.score):
                if piece in self.score:
                    out.append(self.ids[piece])
                else:
                    out += [self.ids[f"<0x{b:02X}>"] for b in piece.encode("utf-8")]
            self.cache[word] = out
        return self.cache[word]

    def encode(self, text, bos=True):
        ids = [BOS] if bos else []
        if text:
            for word in split_words(SPACE + text.replace(" ", SPACE)):
                ids += self.encode_word(word)
        return ids

    def decode(self, ids):
        data = b""
        for i in ids:
            if self.types[i] == TYPE_BYTE:
                data += bytes([int(self.tokens[i][3:5], 16)])
            elif self.types[i] == TYPE_NORMAL:
                data += self.tokens[i].replace(SPACE, " ").encode("utf-8")
        text = data.decode("utf-8", "replace")
        return text[1:] if text.startswith(" ") else text


def split_words(text):
    """Cuts before each space mark and around each newline (which is no piece, so nothing joins across it)."""
    words, begin = [], 0
    for i in range(1, len(text)):
        if text[i] == SPACE or text[i] == "\n" or text[i - 1] == "\n":
            words.append(text[begin:i])
            begin = i
    words.append(text[begin:])
    return words
