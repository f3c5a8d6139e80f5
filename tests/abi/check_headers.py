#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Compiles each public header alone, twice included, as every supported C and C++ standard with every compiler given,
# with warnings that an application may have on, padding included.
#   check_headers.py INCLUDE_DIR COMPILER ...      COMPILER is a C compiler; its C++ side is found by name (gcc -> g++)
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wpadded", "-Wshadow", "-Wconversion", "-Wundef", "-Werror"]
C_WARNINGS = ["-Wstrict-prototypes", "-Wmissing-prototypes"]
C_STANDARDS = ["c99", "c11", "c17"]
CXX_STANDARDS = ["c++11", "c++17", "c++20"]
CXX_SIDE = {"gcc": "g++", "clang": "clang++", "cc": "c++"}


def commands(include_dir, compilers):
    for compiler in compilers:
        for standard in C_STANDARDS:
            yield [compiler, f"-std={standard}", "-x", "c", *WARNINGS, *C_WARNINGS, f"-I{include_dir}"]
        for standard in CXX_STANDARDS:
            yield [CXX_SIDE[compiler], f"-std={standard}", "-x", "c++", *WARNINGS, f"-I{include_dir}"]


def compile_alone(command, header):
    program = f'#include "kvasir/{header}"\n#include "kvasir/{header}"\nint main(void) {{ return 0; }}\n'
    result = subprocess.run([*command, "-c", "-o", "/dev/null", "-"], input=program, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if result.returncode == 0:
        return None
    return f"--- {header} with {command[0]} {command[1]}\n{result.stdout}"


def main():
    include_dir, compilers = Path(sys.argv[1]), sys.argv[2:]
    headers = sorted(p.name for p in (include_dir / "kvasir").glob("*.h"))
    work = [(command, header) for command in commands(include_dir, compilers) for header in headers]
    with ThreadPoolExecutor() as pool:
        failures = [text for text in pool.map(lambda item: compile_alone(*item), work) if text]
    print("\n".join(failures))
    print(f"{len(work) - len(failures)} of {len(work)} compilations clean ({', '.join(headers)}; {', '.join(compilers)})")
    return 1 if failures or not work else 0


if __name__ == "__main__":
    sys.exit(main())
