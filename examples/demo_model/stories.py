# SPDX-License-Identifier: MIT
"""Seeded generator of simple English stories for small children.

A story is one expansion of a compositional grammar (story_plots.py) over word lists (story_words.py):
  (a|b|c)  one of the alternatives        [x]  x, or nothing (half and half)
  @name    a slot; slots that name a person, a place or a thing keep their value through the story
The held-out set is made by construction: about 4 % of all (hero kind, place, plot) combinations never appear in
the training split, and every held-out story has such a combination.

  python3 stories.py --split train --seed 1 --count 5
  python3 stories.py --stats
"""
import argparse
import random
import re
import zlib

import story_plots as plots
import story_words as words

PRONOUNS = {"he": ("he", "him", "his", "himself"), "she": ("she", "her", "her", "herself")}


class Story:
    """One story in the making: the random source and the values that slots hold."""

    def __init__(self, rng):
        self.rng = rng
        self.slots = {}
        self.used = {}

    def pick(self, options):
        return options[int(self.rng.random() * len(options))]

    def pick_new(self, key, options):
        """A choice that this story has not made before from the list named key."""
        taken = self.used.setdefault(key, set())
        while True:
            value = self.pick(options)
            if value not in taken or len(taken) >= len(options):
                taken.add(value)
                return value

    # --- people -------------------------------------------------------------------------------------------------
    def name(self, sex, animal):
        while True:
            roll = self.rng.random()
            if roll < 0.2:
                value = self.pick(words.NAME_A) + self.pick(words.NAME_V) + self.pick(words.NAME_B)
                if self.rng.random() < 0.6:
                    value += self.pick(words.NAME_Z)
            elif animal and roll < 0.65:
                value = self.pick(words.PETS)
            else:
                value = self.pick(words.BOYS if sex == "he" else words.GIRLS)
            taken = self.used.setdefault("first letters", set())
            if value[0] not in taken:           # two people never share a first letter
                taken.add(value[0])
                return value

    def person(self, prefix, kind=None):
        sex = self.pick(["he", "she"])
        if isinstance(kind, tuple):
            kind, sex = kind[0], kind[1] or sex
        if kind is None:
            kind = "human" if self.rng.random() < 0.45 else self.pick_new("kind", words.ANIMALS)
        if kind == "human":
            kind = "boy" if sex == "he" else "girl"
        name = self.name(sex, kind not in ("boy", "girl"))
        low = prefix.lower()
        he, him, his, himself = PRONOUNS[sex]
        self.slots.update({prefix: name, low + "k": kind, low + "he": he, low + "him": him, low + "his": his,
                           low + "self": himself})

    def helper(self):
        kind = self.pick(words.WISE)
        sex = "she" if kind in words.FEMALE_ONLY else "he" if kind in words.MALE_ONLY else self.pick(["he", "she"])
        he, him, his, _ = PRONOUNS[sex]
        self.slots.update({"gk": kind, "G": "the " + kind, "ghe": he, "ghim": him, "ghis": his})

    def cast(self, hero_kind, place):
        self.person("H", hero_kind)
        for key, value in (("he", "hhe"), ("him", "hhim"), ("his", "hhis"), ("himself", "hself")):
            self.slots[key] = self.slots[value]
        if self.slots["hk"] not in ("boy", "girl"):
            self.used["kind"] = {self.slots["hk"]}
        self.person("F")
        self.helper()
        parent, sex = self.pick(words.FAMILY)
        he, him, his, _ = PRONOUNS[sex]
        self.slots.update({"P": parent, "phe": he, "phim": him, "phis": his})
        self.slots["inplace"], self.slots["place"] = " ".join(place), place[1]

    def address(self, text):
        """How others speak to a hero without a name: "Do not cry, little fox!"."""
        kind = self.slots["hk"]
        if self.slots["H"] == "the " + kind:
            text = re.sub(f', the {kind}(?=[.!?,])', f", little {kind}", text)
            text = re.sub(f"(?i)my name is the {kind}", f"I am a {kind}", text)
            text = text.replace(f"I am the {kind}", f"I am a {kind}").replace(f"The {kind} the {kind}", f"The {kind}")
            text = polish(text)
        return text

    # --- slots --------------------------------------------------------------------------------------------------
    def slot(self, name):
        if name in self.slots:
            return self.slots[name]
        if name in plots.MACROS:                               # a phrase that may differ at each use
            return self.expand(plots.MACROS[name])
        if name in plots.FRESH:                                # a new word at each use
            return self.pick_new(name, plots.FRESH[name])
        base = name.rstrip("0123456789")
        group = plots.FIXED[base]                              # drawn once, then kept
        value = self.pick_new(base, group["from"])
        parts = value if isinstance(value, tuple) else (value,)
        tail = name[len(base):]
        for key, part in zip(group["names"], parts):
            self.slots[key + tail] = self.expand(part)
        return self.slots[name]

    def expand(self, text):
        out, i = [], 0
        while i < len(text):
            c = text[i]
            if c in "([":
                options, i = split_options(text, i)
                if c == "[":
                    options = options if self.rng.random() < 0.5 else [""]
                out.append(self.expand(self.pick(options)))
            elif c == "@":
                m = re.compile(r"[A-Za-z]+[0-9]?").match(text, i + 1)
                name = m.group()
                if name[0].isupper() and name not in self.slots and len(name) > 1:
                    value = self.slot(name[0].lower() + name[1:])
                    value = value[0].upper() + value[1:]
                else:
                    value = self.slot(name)
                out.append(value)
                i = m.end()
            else:
                out.append(c)
                i += 1
        return "".join(out)


def split_options(text, start):
    """The alternatives of the group that opens at start, and the position after it."""
    depth, options, begin = 0, [], start + 1
    for i in range(start, len(text)):
        if text[i] in "([":
            depth += 1
        elif text[i] in ")]":
            depth -= 1
            if depth == 0:
                return options + [text[begin:i]], i + 1
        elif text[i] == "|" and depth == 1:
            options.append(text[begin:i])
            begin = i + 1
    raise ValueError("unbalanced group in: " + text)


def polish(text):
    """Spaces, a/an, and capitals at sentence starts."""
    text = re.sub(r"[ \n]+", " ", text).strip()
    text = re.sub(r" ([.,!?])", r"\1", text)
    text = re.sub(r"\b([Aa]) (?=[aeio]|u(?!ni))", r"\1n ", text)
    text = re.sub(r"(^|[.!?] )(\"?)([a-z])", lambda m: m.group(1) + m.group(2) + m.group(3).upper(), text)
    text = re.sub(r'(^| )"([a-z])', lambda m: m.group(1) + '"' + m.group(2).upper(), text)
    text = re.sub(r'\b(said|cried|called|asked|replied|answered) (he|she)\b', r"\2 \1", text)
    text = re.sub(r"\?[,!.]+", "?", text)
    text = re.sub(r'([.!?]" )the\b', r"\1The", text)
    return re.sub(r'\?" (she |he |)said', r'?" \1asked', text)


def held_out(kind, place, plot):
    return zlib.crc32(f"{kind}/{place}/{plot}".encode()) % 25 == 0


def make_story(rng, split="train"):
    """One story as text; paragraphs are separated by a newline."""
    while True:
        story = Story(rng)
        roll = rng.random()
        hero = "human" if roll < 0.35 else story.pick(words.ANIMALS if roll < 0.8 else words.ROLES)
        place = story.pick(words.PLACES)
        plot = story.pick(sorted(plots.PLOTS))
        story.cast(hero, place)
        if held_out(story.slots["hk"], place[1], plot) == (split == "heldout"):
            break
    recipe = plots.PLOTS[plot]
    story.slots["lesson"] = story.pick(words.LESSONS[recipe["lesson"]])
    roll = rng.random()
    if roll < 0.2:                               # the hero has no name in this story
        story.slots["H"] = "the " + story.slots["hk"]
        openings = plots.NAMELESS if roll < 0.12 else plots.LOOSE
    else:
        openings = plots.OPENINGS if roll < 0.75 else plots.LOOSE
    openings = [o for o in openings if not ("@F" in o and recipe.get("meets"))]
    openings = [o for o in openings if not ("@toy" in o and not recipe.get("owns"))]
    opening = story.pick(openings)
    beats = [b.replace("@H had a @toy. ", "") if "@toy" in opening else b for b in recipe["beats"]]
    texts = [story.address(polish(story.expand(b))) for b in [opening] + beats]
    told = " ".join(texts)
    endings = [e for e in plots.ENDINGS if all("@" + k not in e or story.slots[k] in told for k in "FG")]
    texts = [t for t in texts + [story.address(polish(story.expand(story.pick(endings))))] if t]
    if rng.random() < 0.5:
        return " ".join(texts)
    lines = [texts[0]]
    for t in texts[1:]:
        lines[-1:] = [lines[-1] + " " + t] if rng.random() < 0.4 else [lines[-1], t]
    return "\n".join(lines)


def stories(split, seed, count):
    rng = random.Random(f"kvasir-{split}-{seed}")
    for _ in range(count):
        yield make_story(rng, split)


def stats():
    """Entropy of the choices of a story in bits: about 2 to that power distinct stories."""
    import math

    class Counting(random.Random):
        bits = 0.0

    rng = Counting("stats")
    plain = Story.pick

    def counting_pick(self, options):
        rng.bits += math.log2(len(options))
        return plain(self, options)

    Story.pick = counting_pick
    texts = [make_story(rng) for _ in range(3000)]
    Story.pick = plain
    sizes = sorted(len(t) for t in texts)
    vocabulary = {w for t in texts for w in re.findall(r"[A-Za-z']+", t)}
    print(f"choices per story: about {rng.bits / len(texts):.0f} bits; {len(plots.PLOTS)} plots; characters: "
          f"median {sizes[len(sizes) // 2]}, longest {sizes[-1]}; {len(vocabulary)} words in {len(texts)} stories")


def main():
    ap = argparse.ArgumentParser(description="print stories")
    ap.add_argument("--split", choices=["train", "heldout"], default="train")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--count", type=int, default=3)
    ap.add_argument("--stats", action="store_true")
    args = ap.parse_args()
    if args.stats:
        stats()
        return
    for text in stories(args.split, args.seed, args.count):
        print(text, end="\n\n")


if __name__ == "__main__":
    main()
