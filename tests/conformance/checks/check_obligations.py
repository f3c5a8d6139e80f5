#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# The table of obligations in backends/README.md and the obligations that cases of the suite name are the same, and the
# groups in the last column of the table are those of the cases.
#   check_obligations.py TOOL README
import re
import subprocess
import sys
from pathlib import Path

ROW = re.compile(r"^\| (KVB-\d+) \|.*\| ([^|]*) \|$")


def main():
    tool, readme = sys.argv[1:]
    listing = subprocess.run([tool, "--list"], check=True, capture_output=True, text=True).stdout
    cases = {}
    problems = []
    for line in listing.splitlines():
        name, _, obligations = line.split("\t")
        if not re.fullmatch(r"KVB-\d+( KVB-\d+)*", obligations) and not name.startswith("perf/"):
            problems.append(f"{name} names the obligations '{obligations}'")
        for obligation in obligations.split():
            cases.setdefault(obligation, set()).add(name.split("/")[0])
    table = {}
    for line in Path(readme).read_text(encoding="utf-8").splitlines():
        if match := ROW.match(line):
            if match[1] in table:
                problems.append(f"{match[1]} is in the table twice")
            table[match[1]] = {group.strip() for group in match[2].split(",")}
    if len(table) < 20:
        problems.append(f"the table in {readme} has {len(table)} rows")
    problems += [f"{one} is in the table, but no case names it" for one in sorted(table.keys() - cases.keys())]
    problems += [f"{one} is named by cases, but not in the table" for one in sorted(cases.keys() - table.keys())]
    for one in sorted(table.keys() & cases.keys()):
        if table[one] != cases[one]:
            problems.append(f"{one}: the table says {sorted(table[one])}, the cases are in {sorted(cases[one])}")
    print("\n".join(problems) or f"{len(table)} obligations, each named by a case")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
