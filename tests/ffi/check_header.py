#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# What makes kvasir.h and types.h bindable, checked on their text: members of fixed width, no unions, bit-fields or enum
# types, nothing by value, callbacks that take their user pointer first, size first in structs, errors last in calls.
# Also compiles them for a 32-bit machine where the compiler can.
#   check_header.py INCLUDE_DIR
import re
import subprocess
import sys
from pathlib import Path

SCALARS = {"uint32_t", "int32_t", "uint64_t", "int64_t", "float", "double", "char", "kv_status", "kv_sequence"}
FROZEN = {"kv_allocator", "kv_decode_input", "kv_logit_bias", "kv_candidate"}  # no struct_size: they never grow
WITHOUT_USER = {"kv_parallel_body_fn"}  # Kvasir's own function, with an argument in that place


def code_of(path):
    text = re.sub(r"/\*.*?\*/", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"^\s*#.*(?:\\\n.*)*$", " ", text, flags=re.MULTILINE)


def struct_problems(name, body):
    members = [m.strip() for m in body.split(";") if m.strip()]
    if name not in FROZEN and members[0] != "uint32_t struct_size":
        yield f"{name} does not begin with uint32_t struct_size"
    for member in members:
        if "(*" in member:
            yield from callback_problems(f"{name}: {member}", member)
        elif ":" in member:
            yield f"{name}: '{member}' is a bit-field"
        elif "*" not in member:
            kind = member.split()[0]
            if kind not in SCALARS and not kind.endswith("_fn"):
                yield f"{name}: '{member}' is of no fixed width, or by value"


def callback_problems(name, text):
    if not re.search(r"\)\s*\(\s*void\*\s*(user|arg)\b", text):
        yield f"{name} does not take its user pointer first"


def call_problems(text, structs):
    name = re.search(r"(\w+)\s*\(", text)[1]
    result = text.split(name)[0].strip()
    parameters = [p.strip() for p in re.search(r"\((.*)\)", text, re.DOTALL)[1].split(",")]
    if result == "kv_status" and parameters[-1] != "kv_error* error":
        yield f"{name} is fallible and does not take a kv_error* last"
    if result.rstrip("*") == result and result.split()[-1] in structs:
        yield f"{name} returns a struct by value"
    for parameter in parameters:
        kind = parameter.removeprefix("const ").split()[0]
        if kind in structs:
            yield f"{name}: '{parameter}' is passed by value"
        if kind in ("bool", "_Bool", "long", "int", "enum", "unsigned"):
            yield f"{name}: '{parameter}' differs between machines"


def problems_of(text):
    found = re.findall(r"typedef struct (\w+) \{([^}]*)\} (\w+);", text)
    structs = {name: body for name, body, alias in found if name == alias}
    calls = [" ".join(c.split()) for c in re.findall(r"KV_API\s+([^;]*)", text)]
    callbacks = re.findall(r"typedef [^;{]*?\(\*(\w+)\)\s*\([^;]*\);", text)
    for word in ("union", "long", "bool", "_Bool", "va_list", "wchar_t"):
        if re.search(rf"\b{word}\b", text):
            yield f"the headers use {word}"
    if re.search(r"\benum\s+\w+", text):
        yield "the headers have an enum type with a name"
    for name, body in structs.items():
        yield from struct_problems(name, body)
    for name in callbacks:
        if name not in WITHOUT_USER:
            yield from callback_problems(name, re.search(rf"\(\*{name}\)[^;]*", text)[0])
    for call in calls:
        yield from call_problems(call, structs)
    if len(structs) < 20 or len(calls) < 50 or len(callbacks) < 6:
        yield f"only {len(structs)} structs, {len(calls)} calls, {len(callbacks)} callbacks were found"


def compiles_for_32_bits(include_dir):
    command = ["cc", "-m32", "-std=c99", "-Wall", "-Wextra", "-Werror", "-ffreestanding", f"-I{include_dir}",
               "-fsyntax-only", "-x", "c"]
    if subprocess.run([*command, "/dev/null"], capture_output=True, check=False).returncode != 0:
        print("no -m32 here: the headers are not compiled for 32 bits")
        return True
    program = '#include "kvasir/kvasir.h"\n#include "kvasir/backend.h"\n'
    return subprocess.run([*command, "-"], input=program, text=True, check=False).returncode == 0


def main():
    include_dir = Path(sys.argv[1])
    text = "\n".join(code_of(include_dir / "kvasir" / name) for name in ("types.h", "kvasir.h"))
    problems = list(problems_of(text))
    if not compiles_for_32_bits(include_dir):
        problems.append("the headers do not compile for 32 bits")
    print("\n".join(problems) or "every struct, callback and call can be bound")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
