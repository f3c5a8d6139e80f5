#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Every source begins with the licence line and, build files aside, a comment that says what is in it, and stays under the
# size limit of its kind, or says in that first comment "Over the size limit because ...".
import re
import sys
from pathlib import Path

# The first pattern that matches the path decides the limit in lines.
LIMITS = [
    (r"include/.*\.h", 600),
    (r"src/arch/.*\.(cpp|h)", 250),
    (r"(src|backends|examples)/.*\.(cpp|h|c)", 400),
    (r"tests/.*\.(cpp|h|c|py)", 500),
    (r"examples/.*\.py", 400),
    (r"(.*/)?CMakeLists\.txt|.*\.cmake", 250),
]
EXPLAINED = (".h", ".cpp", ".c", ".py")
TOPS = ("include", "src", "backends", "bindings", "examples", "tests")
EXEMPTION = "Over the size limit because"
LICENCE = "SPDX-License-Identifier: MIT"
COMMENT = re.compile(r'^\s*(//|#|/?\*|""")\s*(.*?)\s*(\*/)?$')


def limit_of(name):
    for pattern, limit in LIMITS:
        if re.fullmatch(pattern, name):
            return limit
    return None


def first_comment(lines):
    """The texts of the comment lines (a Python docstring's first line too) before the first line of code."""
    texts = []
    for line in lines:
        if line.startswith("#!") or not line.strip():
            continue
        match = COMMENT.match(line)
        if not match:
            break
        texts.append(match.group(2))
    return texts


def problems_of(path, name, limit):
    lines = path.read_text(encoding="utf-8").splitlines()
    comment = first_comment(lines)
    if not comment or LICENCE not in comment[0]:
        yield f"{name}: does not begin with '{LICENCE}'"
    elif path.suffix in EXPLAINED and not any(text for text in comment[1:]):
        yield f"{name}: the first comment does not say what is in the file"
    if len(lines) > limit and not any(EXEMPTION in text for text in comment):
        yield f"{name}: {len(lines)} lines, the limit is {limit}"


def main():
    root = Path(sys.argv[1]).resolve()
    files = [root / "CMakeLists.txt"]
    for top in TOPS:
        files += sorted(p for p in (root / top).rglob("*") if p.is_file())
    checked = 0
    problems = []
    for path in files:
        name = path.relative_to(root).as_posix()
        limit = limit_of(name)
        if limit is None:
            continue
        checked += 1
        problems += problems_of(path, name, limit)
    print("\n".join(problems) or f"{checked} files within their limits")
    return 1 if problems or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
