#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Compares today's interface with every frozen one: nothing exported then is missing now, and, where abidiff is
# installed (Debian: abigail-tools), no function or type has changed but by appending.
#   check_frozen.py INCLUDE_DIR FROZEN_DIR SYMBOLS_TXT COMPILER
#
# abidiff compares two stub libraries built here from the two sets of headers, by one compiler and with debug
# information. So it does not matter whether the library itself was built with any, and no description of types, which
# changes with compiler and tool, has to be kept in the tree. The stubs have the functions of the headers with empty
# bodies; that the real library has these is what its own compilation and check_symbols.py say.
# backend.h is compared only with drafts of the same number (major 0: another draft may be anything).
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True  # the source tree is not ours to write to
from check_symbols import declared_text, listed, without_comments

CHANGED, UNUSABLE = 4, 3  # bits of abidiff's exit status


def draft_of(headers):
    text = (headers / "kvasir" / "backend.h").read_text(encoding="utf-8")
    return tuple(re.search(rf"#define KVB_ABI_{part} (\d+)", text).group(1) for part in ("MAJOR", "DRAFT"))


def stub_source(headers, with_backend):
    """C source that defines each KV_API function of kvasir.h, and the entry function of a plugin."""
    lines = ['#include "kvasir/kvasir.h"', '#include "kvasir/backend.h"']
    for prototype in declared_text(headers / "kvasir" / "kvasir.h"):
        returns_nothing = re.match(r"void\s+\w+\s*\(", prototype)
        lines.append(f"KV_API {prototype} {{ {'return;' if returns_nothing else 'return 0;'} }}")
    if with_backend:
        lines.append("KV_API const kvb_api* kv_backend_query_v0(const kvb_host* host, kv_error* error) { return 0; }")
    return "\n".join(lines) + "\n"


def build_stub(headers, folder, compiler, with_backend):
    folder.mkdir()
    source = folder / "stub.c"
    source.write_text(stub_source(headers, with_backend), encoding="utf-8")
    library = folder / "libkvasir.so"
    subprocess.run([compiler, "-std=c11", "-g", "-O0", "-w", "-shared", "-fPIC", f"-I{headers}", "-o", library, source],
                   check=True)
    return library


def only_appends(paragraph):
    """Whether this part of abidiff's report says no more than that members were added at the end of a struct."""
    match = re.fullmatch(r"'struct \w+ at [^\n]*' changed:\n  type size changed from (\d+) to \d+ \(in bits\)\n"
                         r"  \d+ data member insertions?:\n((?:    '[^\n]*', at offset \d+ \(in bits\)[^\n]*\n?)+)",
                         paragraph)
    return match is not None and all(int(offset) >= int(match.group(1))
                                     for offset in re.findall(r", at offset (\d+) \(in bits\)", match.group(2)))


def abi_changes(old, new, compiler):
    """What abidiff says of the way from one set of headers to another; empty when nothing but additions."""
    with tempfile.TemporaryDirectory() as scratch:
        with_backend = draft_of(old) == draft_of(new)
        libraries = [build_stub(headers, Path(scratch) / name, compiler, with_backend)
                     for name, headers in (("old", old), ("new", new))]
        result = subprocess.run(["abidiff", "--leaf-changes-only", "--no-added-syms", *libraries],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode & UNUSABLE:
        raise RuntimeError(result.stdout)
    if not result.returncode & CHANGED:
        return ""
    parts = [part.strip("\n") for part in re.split(r"\n\s*\n", result.stdout) if part.strip()]
    return "\n".join(part for part in parts if not part.startswith("Leaf changes summary") and not only_appends(part))


# Changes to today's headers that must be found (True) or let pass (False): file, text, replacement. Comments are gone
# from the text, and spaces are single.
MUTATIONS = [
    (True, "kvasir.h", "KV_API uint32_t kv_version(void);", ""),
    (True, "kvasir.h", "KV_API uint32_t kv_version(void);", "KV_API uint64_t kv_version(void);"),
    (True, "kvasir.h", "kv_sampler_accept(kv_sampler* sampler, int32_t token,",
     "kv_sampler_accept(kv_sampler* sampler,"),
    (True, "kvasir.h", "uint32_t k_type, v_type;\n uint32_t page_tokens;",
     "uint32_t k_type, v_type;\n uint64_t page_tokens;"),
    (True, "kvasir.h", "uint64_t bytes_per_token;", "uint64_t inserted; uint64_t bytes_per_token;"),
    (True, "kvasir.h", "uint32_t dim;\n uint32_t heads, kv_heads;", "uint32_t heads, kv_heads;\n uint32_t dim;"),
    (True, "types.h", "char message[504];", "char message[508];"),
    (True, "backend.h", "(*queue_wait)(kvb_queue* queue, uint64_t ticket,",
     "(*queue_wait)(kvb_queue* queue, uint32_t ticket,"),
    (True, "backend.h", "uint32_t embedding_count;", ""),
    (False, "kvasir.h", "KV_API uint32_t kv_version(void);",
     "KV_API uint32_t kv_version(void);\nKV_API uint32_t kv_version_of(const char* part);"),
    (False, "kvasir.h", "} kv_memory_plan;", "uint64_t appended;\n} kv_memory_plan;"),
    (False, "backend.h", "} kvb_api;", "kv_status (*appended)(kvb_device* device);\n} kvb_api;"),
    (False, "backend.h", "#define KVB_ABI_DRAFT", "#define KVB_ABI_DRAFT 99 //"),
]


def problems_of_the_check(include, compiler):
    """The check itself must be able to fail: each mutation of the headers gives the expected verdict."""
    for must_be_found, name, text, replacement in MUTATIONS:
        with tempfile.TemporaryDirectory() as scratch:
            mutated = Path(scratch)
            shutil.copytree(include / "kvasir", mutated / "kvasir")
            header = mutated / "kvasir" / name
            original = re.sub(r"[ \t]+", " ", without_comments(header.read_text(encoding="utf-8")))
            original = re.sub(r" \n", "\n", original)
            if original.count(text) != 1:
                yield f"{name} has '{text.strip()}' {original.count(text)} times: bring MUTATIONS up to date"
                continue
            header.write_text(original.replace(text, replacement), encoding="utf-8")
            if bool(abi_changes(include, mutated, compiler)) != must_be_found:
                yield f"{'not found' if must_be_found else 'wrongly refused'}: {text.strip()} -> {replacement.strip()}"


def main():
    include, frozen, symbols = (Path(argument) for argument in sys.argv[1:4])
    compiler = sys.argv[4]
    baselines = sorted((path for path in frozen.iterdir() if path.is_dir()),
                       key=lambda path: [int(part) for part in path.name.split(".")])
    problems = [] if baselines else [f"{frozen} holds no baseline"]
    for baseline in baselines:
        lost = listed(baseline / "symbols.txt") - listed(symbols)
        problems += [f"{baseline.name} had {symbol}, which is gone" for symbol in sorted(lost)]
    have_abidiff = shutil.which("abidiff") is not None
    if have_abidiff:
        for baseline in baselines:
            changes = abi_changes(baseline, include, compiler)
            problems += [f"--- since {baseline.name}\n{changes}"] if changes else []
        problems += problems_of_the_check(include, compiler)
    if problems:
        print("\n".join(problems))
        return 1
    names = ", ".join(baseline.name for baseline in baselines)
    if not have_abidiff:
        print("abi.frozen: Skipped\n"
              f"abidiff is not installed (Debian: abigail-tools); only symbols were compared with {names}\n"
              "[  SKIPPED ] abi.frozen")
        return 77
    print(f"unchanged but for additions since {names}; {len(MUTATIONS)} changes to the headers judged as expected")
    return 0


if __name__ == "__main__":
    sys.exit(main())
