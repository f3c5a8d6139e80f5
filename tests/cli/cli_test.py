#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# End-to-end tests of the kvasir tool and of cache_vs_recompute: what they print, their sentences and exit codes.
#   cli_test.py KVASIR CACHE_VS_RECOMPUTE GROUP     a group is a class below, in lower case with underscores
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

TOOL, CACHE_VS_RECOMPUTE, GROUP = sys.argv[1:4]
DATA = Path(os.environ.get("KVASIR_TEST_DATA", "examples/demo_model"))
SHARED = Path(os.environ.get("KVASIR_SHARED", "../shared"))
MODEL = str(DATA / "demo.gguf")
PROMPT = "Once upon a time"
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "KVASIR_BACKEND_PATH"}
# So hot that every token is about equally likely: with this seed the text does not end for a long time.
ENDLESS = ["--temp", "1000000", "--seed", "6"]


def run(*arguments, program=TOOL, text=b"", **options):
    return subprocess.run([program, *arguments], input=text, capture_output=True, env=ENVIRONMENT, timeout=240,
                          **options)


class Case(unittest.TestCase):
    def good(self, *arguments, **options):
        """The standard output of a run that succeeds."""
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        return result.stdout

    def bad(self, code, sentence, *arguments):
        """Checks exit code and sentence of a run that fails, and that it prints nothing else."""
        result = run(*arguments)
        self.assertEqual(result.returncode, code, result.stderr.decode())
        self.assertTrue(result.stderr.decode().startswith("kvasir: "), result.stderr)
        self.assertIn(sentence, result.stderr.decode())
        self.assertEqual(result.stdout, b"")


class Generate(Case):
    def test_recorded_story(self):
        model = SHARED / "models/stories260K-f32.gguf"
        record = SHARED / "models/expected/stories260K-f32.story.json"
        if not model.exists() or not record.exists():
            reason = f"no {model} with its recorded story"
            print(f"cli_test.py:1: Skipped\n{reason}\n[  SKIPPED ] {self.id()}", flush=True)
            self.skipTest(reason)
        story = json.loads(record.read_text())
        self.assertEqual(story["prompt"], PROMPT)
        expected = PROMPT + story["text"] + "\n"
        for device in ("cpu", "ref"):
            text = self.good("generate", "-m", str(model), "-p", PROMPT, "--temp", "0", "--device", device)
            self.assertEqual(text.decode(), expected, device)

    def test_same_seed_same_text(self):
        def text(seed, *more):
            return self.good("generate", "-m", MODEL, "-p", PROMPT, "--seed", seed, "-n", "40", *more).decode()

        self.assertEqual(text("7"), text("7"))
        self.assertNotEqual(text("7"), text("8"))
        self.assertTrue(text("7").startswith(PROMPT))
        self.assertEqual(PROMPT + text("7", "--no-echo"), text("7"))

    def test_prompt_from_file_and_standard_input(self):
        common = ("generate", "-m", MODEL, "--temp", "0", "-n", "20")
        expected = self.good(*common, "-p", PROMPT)
        self.assertEqual(self.good(*common, text=PROMPT.encode()), expected)
        with tempfile.NamedTemporaryFile() as file:
            file.write(PROMPT.encode())
            file.flush()
            self.assertEqual(self.good(*common, "--file", file.name), expected)

    def test_full_context_is_said(self):
        result = run("generate", "-m", MODEL, "-p", PROMPT, "--ctx", "16", "-n", "0", *ENDLESS)
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"the context is full (16 tokens)", result.stderr)
        self.assertTrue(result.stdout.startswith(PROMPT.encode()))

    def test_stats(self):
        result = run("generate", "-m", MODEL, "-p", PROMPT, "--seed", "3", "-n", "8", "--stats", "--k-type", "q8_0",
                     "--v-type", "f32", "--compute", "exact", "--device", "ref")
        stats = result.stderr.decode()
        for part in ("ref:0 (scalar), exact, keys q8_0, values f32", "prefill     5 tokens", "decode      7 tokens",
                     "seed        3"):
            self.assertIn(part, stats)


class Interrupt(Case):
    def interrupted(self, arguments, text, wait):
        process = subprocess.Popen([TOOL, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=ENVIRONMENT)
        process.stdin.write(text)
        process.stdin.close()
        first = process.stdout.read(wait) if wait else b""
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        errors = process.stderr.read()
        process.stdout.close()
        process.stderr.close()
        return process.wait(timeout=60), first + rest, errors

    def test_text_so_far(self):
        arguments = ["generate", "-m", MODEL, "--device", "ref", "--ctx", "20000", "-n", "0", *ENDLESS]
        code, text, errors = self.interrupted(arguments, PROMPT.encode(), wait=len(PROMPT) + 20)
        self.assertEqual(code, 130, errors)
        self.assertNotIn(b"KV_", errors)
        self.assertTrue(text.startswith(PROMPT.encode()))
        self.assertTrue(text.endswith(b"\n"))

    def test_long_prompt(self):
        # All of this prompt would take the reference backend minutes.
        arguments = ["logits", "-m", MODEL, "--device", "ref", "--ctx", "40000", "--batch", "16", "--all"]
        code, text, errors = self.interrupted(arguments, b"One day a cat sat. " * 4000, wait=10)
        self.assertEqual(code, 130, errors)
        self.assertEqual(errors, b"")
        self.assertTrue(text.startswith(b"after position 0"))


class Errors(Case):
    def test_failures(self):
        self.bad(1, "KV_NOT_FOUND: cannot open 'no_such.gguf'", "generate", "-m", "no_such.gguf", "-p", "x")
        self.bad(1, "KV_NOT_FOUND: there is no backend 'quantum'", "info", "-m", MODEL, "--device", "quantum")
        self.bad(1, "KV_CORRUPT", "info", "-m", __file__)
        self.bad(1, "KV_CONTEXT_FULL", "logits", "-m", MODEL, "-p", "a long prompt that has more tokens", "--ctx", "4")
        self.bad(1, "KV_INVALID_ARGUMENT", "logits", "-m", MODEL, "--tokens", "1,99999")
        self.bad(1, "no_such.txt", "tokenize", "-m", MODEL, "--file", "no_such.txt")
        self.bad(1, "cannot write", "logits", "-m", MODEL, "-p", "x", "--out", "/no/such/folder/x")

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([TOOL, "devices"], stdout=full, stderr=subprocess.PIPE, env=ENVIRONMENT, timeout=60)
        self.assertEqual((result.returncode, result.stderr), (1, b"kvasir: KV_IO: cannot write to standard output\n"))

    def test_usage(self):
        self.bad(2, "--model is required", "generate", "-p", "x")
        self.bad(2, "'f33' is not one of bf16, f16, f32, q8_0", "generate", "-m", MODEL, "--kv-type", "f33")
        self.bad(2, "'slow' is not one of exact, fast", "generate", "-m", MODEL, "--compute", "slow")
        self.bad(2, "--nonsense", "generate", "-m", MODEL, "--nonsense")
        self.bad(2, "--temp", "generate", "-m", MODEL, "--temp", "warm")
        self.bad(2, "not a size", "info", "-m", MODEL, "--budget", "much")
        self.bad(2, "not both", "generate", "-m", MODEL, "-p", "x", "--file", "y")
        self.bad(2, "layers 0 to", "trace", "-m", MODEL, "-p", "x", "--layer", "99")
        for option, value in (("-n", "-1"), ("--ctx", "-1"), ("--seed", "18446744073709551616"), ("-n", "1x")):
            sentence = f"'{value}' is not a whole number below 2^64"
            self.bad(2, sentence, "generate", "-m", MODEL, "-p", "x", f"{option}={value}" if option[1] == "-" else option + value)
        self.bad(2, "subcommand")

    def test_help(self):
        self.assertIn(b"generate", self.good("--help"))
        for command in ("generate", "logits", "tokenize", "info", "devices", "trace", "bench"):
            self.assertIn(f"kvasir {command}".encode(), self.good(command, "--help"))


class Tables(Case):
    def test_devices(self):
        report = json.loads(self.good("devices", "--json"))
        names = {backend["backend"]: backend for backend in report}
        for name in ("cpu", "ref"):
            self.assertEqual(names[name]["status"], "KV_OK")
            self.assertEqual(names[name]["devices"][0]["device"], f"{name}:0")
        self.assertIn(b"cpu:0", self.good("devices"))

    def test_tokenize_round_trip(self):
        text = 'Tom said: "é ☃ 0x1F?"\n'.encode() + b"\xff\x00 end"
        ids = self.good("tokenize", "-m", MODEL, "--ids", text=text).decode().strip()
        self.assertEqual(ids.split(",")[0], "1")
        self.assertEqual(self.good("tokenize", "-m", MODEL, "--decode", ids), text + b"\n")
        no_bos = self.good("tokenize", "-m", MODEL, "--ids", "--no-bos", text=text).decode().strip()
        self.assertEqual("1," + no_bos, ids)
        self.assertEqual(self.good("tokenize", "-m", MODEL, "--decode", "1", "--specials"), b"<s>\n")

    def test_logits(self):
        vocab = json.loads(self.good("info", "-m", MODEL, "--json"))["vocab"]
        with tempfile.TemporaryDirectory() as folder:
            last, every = Path(folder, "last"), Path(folder, "all")
            self.good("logits", "-m", MODEL, "--tokens", "1,5,9", "--out", str(last))
            self.good("logits", "-m", MODEL, "--tokens", "1,5,9", "--all", "--out", str(every))
            self.assertEqual(last.stat().st_size, 4 * vocab)
            self.assertEqual(every.stat().st_size, 3 * 4 * vocab)
            self.assertEqual(every.read_bytes()[-4 * vocab:], last.read_bytes())
            logits = struct.unpack(f"<{vocab}f", last.read_bytes())
        table = self.good("logits", "-m", MODEL, "--tokens", "1,5,9", "--top", "3").decode().splitlines()
        self.assertEqual(len(table), 2 + 3)
        self.assertEqual(int(table[2].split()[0]), logits.index(max(logits)))

    def test_info(self):
        info = json.loads(self.good("info", "-m", MODEL, "--json", "--metadata", "--tensors", "--budget", "64MiB"))
        self.assertEqual(info["architecture"], "llama")
        self.assertEqual(info["bytes"], sum(total["bytes"] for total in info["types"].values()))
        self.assertEqual(info["bytes"], sum(tensor["bytes"] for tensor in info["tensors"]))
        self.assertEqual(info["budget"], 64 << 20)
        cost = {row["type"]: row["bytes_per_token"] for row in info["cache"]}
        self.assertEqual(cost["f32"], 4 * info["layers"] * info["kv_heads"] * (info["head_dim"] + info["v_head_dim"]))
        self.assertEqual(cost["f16"] * 2, cost["f32"])
        self.assertIn("general.architecture", info["metadata"])
        self.assertIn(b"per token", self.good("info", "-m", MODEL))

    def test_bench(self):
        report = json.loads(self.good("bench", "-m", MODEL, "--prompt", "8", "--depth", "0,16", "--tokens", "4",
                                      "--repeat", "2", "--json"))
        self.assertEqual([(r["what"], r["depth"], r["tokens"]) for r in report["results"]],
                         [("prefill", 0, 8), ("decode", 0, 4), ("prefill", 16, 8), ("decode", 16, 4)])
        for row in report["results"]:
            speed = row["tokens_per_second"]
            self.assertTrue(0 < speed["min"] <= speed["median"] <= speed["max"])


class Trace(Case):
    def test_worked_examples(self):
        expected = {
            "1": ("[1, 1] [0, 1] [1, 2]", "[2, 0] [0, 2] [2, 2]", "[2, 1, 3]", "[1.8199, 1.5105]",
                  "[1.7199, 1.4320]"),
            "2": ("[0.3725, 0.3225, 0.2975, 0.3775]", "[0.2575, 0.2449, 0.2389, 0.2588]",
                  "[0.6275, 0.7021, 0.5149, 0.4574]", "avoids 9 ", "avoids 297 ", "avoids 2997 "),
            "3": ("[0, 2] [1, 1] [1.5105, 1.8199]", "[2, 2] [1, 2] [1.8199, 3.3305]", "[0.0701, 0.0955, 0.8344]",
                  "[2, 2] [1.5, 2] [1.7543, 3.1102]"),
        }
        for device in ("cpu", "ref"):
            for number, parts in expected.items():
                text = self.good("trace", "--example", number, "--device", device).decode()
                for part in (*parts, "give the same bits"):
                    self.assertIn(part, text, f"example {number} on {device}")

    def test_model(self):
        text = self.good("trace", "-m", MODEL, "-p", PROMPT, "--max-columns", "3").decode()
        for heading in ("embed  5 x 128", "layer 0  q  5 x 128", "layer 5  weights of head 3", "logits  1 x "):
            self.assertIn("\n" + heading, text)
        one = self.good("trace", "-m", MODEL, "-p", PROMPT, "--layer", "2").decode()
        self.assertIn("\nlayer 2  attn_out", one)
        self.assertNotIn("layer 1", one)


class CacheVsRecompute(Case):
    def test_table_and_plot(self):
        with tempfile.TemporaryDirectory() as folder:
            plot = str(Path(folder, "plot.svg"))
            text = self.good(MODEL, "24", plot, program=CACHE_VS_RECOMPUTE).decode()
            root = xml.etree.ElementTree.parse(plot).getroot()
        self.assertIn("all 24 steps: same tokens, and the same bits in every logit", text)
        # 5 prompt tokens, 24 steps: 28 tokens once each, or 5 + 6 + ... + 28 of them; 3 projections in 6 layers.
        self.assertIn(f"{18 * 28} computed with the cache, {18 * 396} without it, {18 * (396 - 28)} avoided", text)
        self.assertEqual(len(root.findall("{http://www.w3.org/2000/svg}polyline")), 2)

    def test_usage(self):
        self.assertEqual(run(program=CACHE_VS_RECOMPUTE).returncode, 2)
        self.assertEqual(run(MODEL, "none", program=CACHE_VS_RECOMPUTE).returncode, 2)
        missing = run("no_such.gguf", program=CACHE_VS_RECOMPUTE)
        self.assertEqual(missing.returncode, 1)
        self.assertIn(b"KV_NOT_FOUND", missing.stderr)


if __name__ == "__main__":
    name = "".join(part.capitalize() for part in GROUP.split("_"))
    unittest.main(argv=[sys.argv[0], "-v", name])
