#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Which folder may include which. Dependencies point downwards only; this reads every #include of the project and
# fails with a line per violation. The tables below are the rule.
import re
import sys
from pathlib import Path

# Folder of src/ -> folders of src/ it may include besides itself: base < text < model < program < arch, base < loader,
# and the runtime over all of them.
SRC_MAY_USE = {
    "base": set(),
    "text": {"base"},
    "loader": {"base"},
    "model": {"base", "text"},
    "program": {"base", "model"},
    "arch": {"base", "model", "program"},
    "runtime": {"base", "text", "loader", "model", "program", "arch"},
    "api": {"base", "text", "loader", "model", "runtime"},
}
# Folders of src/ that never see the application's header.
NO_PUBLIC_API = {"base", "program", "arch"}
# Libraries of tests and tools, never of the library or a plugin.
TOOLS_ONLY = re.compile(r"^(gtest|gmock|rapidcheck|nlohmann|CLI|benchmark)(/|\.h)")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
SUFFIXES = {".c", ".cpp", ".h"}


def sources(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES)


def includes(path):
    return [(kind == '"', name) for kind, name in INCLUDE.findall(path.read_text(encoding="utf-8"))]


def resolve(name, places):
    for place in places:
        candidate = (place / name).resolve()
        if candidate.is_file():
            return candidate
    return None


def src_violation(root, path, quoted, name):
    src = root / "src"
    folder = path.relative_to(src).parts[0]
    if folder not in SRC_MAY_USE:
        return f"src/{folder} is not in the table of check_includes.py"
    if not quoted:
        if TOOLS_ONLY.match(name):
            return "the library does not use libraries of tests and tools"
        if name.startswith("pcre2") and folder != "text":
            return "only src/text uses PCRE2"
        return None
    target = resolve(name, [path.parent, src, root / "include"])
    if target is None:
        return "names no file of src/ or include/"
    if target.is_relative_to(root / "include"):
        return f"src/{folder} does not see the application's header" if (
            target.name == "kvasir.h" and folder in NO_PUBLIC_API) else None
    if not target.is_relative_to(src):
        return "src includes only src and include/kvasir"
    used = target.relative_to(src)
    if used.parts[0] == folder or used.parts[0] in SRC_MAY_USE[folder]:
        return None
    return f"src/{folder} may not use src/{used.parts[0]}"


def backend_violation(root, path, quoted, name):
    backends = root / "backends"
    own = backends / path.relative_to(backends).parts[0]
    if not quoted:
        return "a plugin does not use libraries of tests and tools" if TOOLS_ONLY.match(name) else None
    target = resolve(name, [path.parent, own, backends, root / "include"])
    if target is None:
        return "names no file of this backend, backends/sdk or include/kvasir"
    if target.is_relative_to(root / "include"):
        return "a plugin does not see the application's header" if target.name == "kvasir.h" else None
    if target.is_relative_to(own) or target.is_relative_to(backends / "sdk"):
        return None
    return "a backend includes include/kvasir, backends/sdk and itself only"


def example_violation(root, path, quoted, name):
    examples = root / "examples"
    own = examples / path.relative_to(examples).parts[0]
    if not quoted and not name.startswith("kvasir/"):
        return None
    target = resolve(name, [path.parent, own, examples, root / "include"])
    if target is None:
        return "names no file of this example or include/kvasir"
    if target.is_relative_to(own) or target.is_relative_to(examples / "common"):
        return None
    if target.is_relative_to(root / "include") and target.name not in ("backend.h",):
        return None
    return "an example uses the public headers, examples/common and itself only"


def header_violation(root, path, quoted, name):
    if not quoted:
        return None
    return None if name.startswith("kvasir/") and resolve(name, [root / "include"]) else (
        "a public header includes public headers only, as \"kvasir/...\"")


RULES = {
    "include": header_violation,
    "src": src_violation,
    "backends": backend_violation,
    "examples": example_violation,
}


def main():
    root = Path(sys.argv[1]).resolve()
    checked = 0
    violations = []
    for top, rule in RULES.items():
        for path in sources(root / top):
            checked += 1
            for quoted, name in includes(path):
                problem = rule(root, path, quoted, name)
                if problem:
                    violations.append(f"{path.relative_to(root)}: #include {name}: {problem}")
    print("\n".join(violations) or f"{checked} files, every include points downwards")
    return 1 if violations or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
