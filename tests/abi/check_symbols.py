#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Three lists must be equal: the KV_API functions declared in kvasir.h, the version script, and symbols.txt, and the
# library must export exactly these. Each plugin exports its entry symbol alone. Nothing links more than it should.
#   check_symbols.py HEADER MAP SYMBOLS_TXT LIBRARY [PLUGIN ...]
import re
import subprocess
import sys
from pathlib import Path

ENTRY = "kv_backend_query_v0"
SYSTEM = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2",
          "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
LIBRARY_MAY_NEED = SYSTEM | {"libpcre2-8.so.0"}


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)


def declared_text(header):
    """Prototypes declared with KV_API, from behind that word to the closing parenthesis."""
    text = without_comments(header.read_text(encoding="utf-8"))
    text = re.sub(r"^\s*#.*(?:\\\n.*)*$", " ", text, flags=re.MULTILINE)
    return [" ".join(prototype.split()) for prototype in re.findall(r"\bKV_API\b([^;{]*?\))\s*;", text)]


def declared(header):
    """Functions declared with KV_API: the name before the first parenthesis."""
    return {re.search(r"(\w+)\s*\(", prototype).group(1) for prototype in declared_text(header)}


def mapped(version_script):
    text = without_comments(version_script.read_text(encoding="utf-8"))
    exported = re.search(r"global:(.*?)local:", text, flags=re.DOTALL).group(1)
    return set(re.findall(r"[^\s;]+", exported))


def listed(symbols_file):
    lines = symbols_file.read_text(encoding="utf-8").splitlines()
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def exported(library):
    out = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", library],
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    return {line.split()[0].split("@")[0] for line in out.splitlines() if line.split()[1] != "A"}


def needed(library):
    out = subprocess.run(["readelf", "-d", library], stdout=subprocess.PIPE, text=True, check=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", out))


def differences(name, found, expected):
    for symbol in sorted(expected - found):
        yield f"{name} lacks {symbol}"
    for symbol in sorted(found - expected):
        yield f"{name} has {symbol} and should not"


def main():
    header, version_script, symbols_file = (Path(argument) for argument in sys.argv[1:4])
    library, plugins = sys.argv[4], sys.argv[5:]
    expected = declared(header)
    problems = []
    if not expected:
        problems.append(f"{header} declares no KV_API function")
    problems += differences(version_script.name, mapped(version_script), expected)
    problems += differences(symbols_file.name, listed(symbols_file), expected)
    problems += differences(Path(library).name, exported(library), expected)
    problems += [f"{Path(library).name} links {name}" for name in sorted(needed(library) - LIBRARY_MAY_NEED)]
    for plugin in plugins:
        problems += differences(Path(plugin).name, exported(plugin), {ENTRY})
        problems += [f"{Path(plugin).name} links {name}" for name in sorted(needed(plugin) - SYSTEM)]
    print("\n".join(problems) or f"{len(expected)} functions exported, {len(plugins)} plugins export {ENTRY} alone")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
