#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Writes the raw declarations of kvasir.h and types.h from clang's view of them. Run after a change of the headers:
#   generate_sys.py INCLUDE_DIR rust  > src/sys.rs           the crate's declarations
#   generate_sys.py INCLUDE_DIR list  > tests/layout/list.rs sizes, offsets and constants as Rust sees them
#   generate_sys.py INCLUDE_DIR c                            a C program that prints the same list
# The test ffi.rust checks that the first two are current and that the lists agree.
import json
import re
import subprocess
import sys

BASIC = {"uint32_t": "u32", "int32_t": "i32", "uint64_t": "u64", "int64_t": "i64", "float": "f32", "double": "f64",
         "size_t": "usize", "char": "c_char", "void": "c_void"}
KEYWORDS = {"type"}
HEAD = """// SPDX-License-Identifier: MIT
//
// %s
// Written by generate_sys.py from kvasir.h; change the header, not this file.
"""


class Api:
    """What the headers declare, in their order."""

    def __init__(self, include_dir):
        command = ["clang", "-std=c11", "-x", "c", f"-I{include_dir}", "-Xclang", "-ast-dump=json", "-fsyntax-only", "-"]
        program = '#include "kvasir/kvasir.h"\n'
        dump = subprocess.run(command, input=program, text=True, stdout=subprocess.PIPE, check=True).stdout
        self.opaque, self.structs, self.aliases, self.functions, self.constants = [], [], [], [], []
        declared, complete = [], set()
        for node in json.loads(dump)["inner"]:
            name = node.get("name", "")
            kind = node["kind"]
            if kind == "EnumDecl":
                self.add_constants(node)
            if not name.startswith("kv_"):
                continue
            if kind == "RecordDecl" and node.get("completeDefinition"):
                complete.add(name)
                fields = [(f["name"], f["type"]["qualType"]) for f in node["inner"] if f["kind"] == "FieldDecl"]
                self.structs.append((name, fields))
            elif kind == "RecordDecl":
                declared.append(name)
            elif kind == "TypedefDecl" and not node["type"]["qualType"].startswith("struct "):
                self.aliases.append((name, node["type"]["qualType"]))
            elif kind == "FunctionDecl":
                result = node["type"]["qualType"].split("(", 1)[0].strip()
                parameters = [(p["name"], p["type"]["qualType"]) for p in node.get("inner", [])
                              if p["kind"] == "ParmVarDecl"]
                self.functions.append((name, result, parameters))
        self.opaque = [name for name in declared if name not in complete]
        self.add_macros(f"{include_dir}/kvasir/kvasir.h")

    def add_constants(self, node):
        names = [c for c in node["inner"] if c["kind"] == "EnumConstantDecl" and c["name"].startswith("KV_")]
        for constant in names:
            kind = "kv_status" if names[0]["name"] == "KV_OK" else "i32" if "_LOG_" in constant["name"] else "u32"
            self.constants.append((constant["name"], kind, constant["inner"][0]["value"]))

    def add_macros(self, header):
        with open(header, encoding="utf-8") as file:
            text = file.read()
        for name, value in re.findall(r"^#define (KV_\w+) \(?(?:\(kv_sequence\))?(-?\d+)\)?", text, re.MULTILINE):
            kind = "kv_sequence" if name.endswith("_SEQUENCE") else "i32" if name.startswith("KV_TOKEN") else "u32"
            self.constants.append((name, kind, value))


def identifier(name):
    return f"r#{name}" if name in KEYWORDS else name


def rust_function(result, parameters):
    tail = "" if result == "void" else f" -> {rust_type(result)}"
    return f"({', '.join(parameters)}){tail}"


def rust_type(text):
    text = text.strip()
    pointer = re.fullmatch(r"(.*?)\(\*\)\((.*)\)", text)
    if pointer:
        return f'Option<unsafe extern "C" fn{rust_function(pointer[1].strip(), map(rust_type, pointer[2].split(", ")))}>'
    array = re.fullmatch(r"(.*)\[(\d+)\]", text)
    if array:
        return f"[{rust_type(array[1])}; {array[2]}]"
    if text.endswith("*"):
        inner = text[:-1].strip()
        mutability = "const" if inner.startswith("const ") and not inner.endswith("*") else "mut"
        return f"*{mutability} {rust_type(inner.removeprefix('const ') if not inner.endswith('*') else inner)}"
    return BASIC.get(text, text)


def write_rust(api):
    print(HEAD % "Raw declarations of the C API; the header is their manual.")
    print("#![allow(non_camel_case_types)]\n\nuse std::ffi::{c_char, c_void};\nuse std::marker::{PhantomData, PhantomPinned};\n")
    for name, kind in api.aliases:
        print(f"pub type {name} = {rust_type(kind)};")
    for name, kind, value in api.constants:
        print(f"pub const {name}: {kind} = {value};")
    for name in api.opaque:
        print(f"\n#[repr(C)]\npub struct {name} {{\n    _data: [u8; 0],\n    _marker: PhantomData<(*mut u8, PhantomPinned)>,\n}}")
    for name, fields in api.structs:
        print(f"\n#[repr(C)]\n#[derive(Clone, Copy)]\npub struct {name} {{")
        for field, kind in fields:
            print(f"    pub {identifier(field)}: {rust_type(kind)},")
        print("}")
        if fields[0][0] == "struct_size":
            print(f"\nimpl {name} {{\n    /// All zero (which means default), the size set.\n    pub fn sized() -> Self {{")
            print("        // SAFETY: integers, floats and nullable pointers; all may be zero.")
            print("        let mut value: Self = unsafe { std::mem::zeroed() };")
            print("        value.struct_size = std::mem::size_of::<Self>() as u32;\n        value\n    }\n}")
    print('\nextern "C" {')
    for name, result, parameters in api.functions:
        arguments = [f"{identifier(p)}: {rust_type(kind)}" for p, kind in parameters]
        print(f"    pub fn {name}{rust_function(result, arguments)};")
    print("}")


def entries(api):
    """(name, struct, field) with field None for a size; (name, None, None) for a constant."""
    for name, fields in api.structs:
        yield name, name, None
        for field, _ in fields:
            yield f"{name}.{field}", name, field
    for name, _, _ in api.constants:
        yield name, None, None


def write_list(api):
    print(HEAD % "Sizes, offsets and constants as Rust sees them.")
    print("&[")
    for label, struct, field in entries(api):
        value = f"offset_of!({struct}, {identifier(field)})" if field else f"size_of::<{struct}>()" if struct else label
        print(f'    ("{label}", {value} as i64),')
    print("]")


def write_c(api):
    print('#include <stdio.h>\n#include "kvasir/kvasir.h"\nint main(void) {')
    for label, struct, field in entries(api):
        value = f"offsetof({struct}, {field})" if field else f"sizeof({struct})" if struct else label
        print(f'  printf("{label} %lld\\n", (long long){value});')
    print("  return 0;\n}")


def main():
    {"rust": write_rust, "list": write_list, "c": write_c}[sys.argv[2]](Api(sys.argv[1]))


if __name__ == "__main__":
    main()
