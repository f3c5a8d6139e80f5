#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# kvasir-backend-test against backends that break one obligation each: exactly the cases that look for the breach may
# fail, each with a sentence that says what is wrong. And the tool's own options, reports and exit statuses.
#   check_tool.py TOOL BROKEN_PLUGIN PLUGIN_WITH_MORE_SYMBOLS SCRATCH
import fnmatch
import json
import shutil
import subprocess
import sys
from pathlib import Path

# fault: (arguments, {case or glob of cases that fails: part of its sentence})
ALL_SUBMITTING = ["--filter", "load/*", "--filter", "async/tickets_rise"]
FAULTS = {
    "good": (["--filter", "[!op]*/*", "--filter", "program/*"], {}),
    "hole": (["--filter", "load/*"], {"load/table_is_complete": "is NULL"}),
    "crash": (["--filter", "cache/*"], {
        "cache/poison/*": "killed by signal 11 (SIGSEGV)", "cache/refusals": "killed by signal 11"}),
    "hang": (["--filter", "cache/copy_rows/F32", "--filter", "cache/poison/F32", "--timeout", "1"], {
        "cache/copy_rows/F32": "took longer than 1 s"}),
    "exits": (["--filter", "load/*"], {"load/unknown_query": "the process exited with status 3"}),
    "throws": (["--filter", "load/*"], {"load/unknown_query": "thrown across the table"}),
    "prints": (["--filter", "load/*"], {"load/device_count": 'the plugin printed "no device'}),
    "silent": (["--filter", "load/*"], {"load/unknown_query": "left no sentence"}),
    "noreason": ([], {"load/open": "gives no reason"}),
    "badquery": ([], {"load/open": "while the plugin was opened: killed by signal 11 (SIGSEGV)"}),
    "handler": (["--filter", "load/*"], {"load/open": "the handler of signal 12 was changed"}),
    "leaks": (["--filter", "memory/*"], {"memory/weight/Q5_1": "after its end"}),
    "prediction": (["--filter", "memory/*"], {"memory/weight/Q5_0": "predicted"}),
    "tail": (["--filter", "faults/*"], {"faults/struct_sizes": "whose tail is used was accepted"}),
    "release": (["--filter", "memory/*"], {"memory/import_releases_once": "release was called 2 times"}),
    "nulldata": (["--filter", "memory/*"], {"memory/weight_refusals": "data NULL was accepted"}),
    "wrongfree": (["--filter", "memory/import_*", "--filter", "memory/weight/F32", "--filter", "cache/resize_*"], {
        "memory/weight/F32": "another size or alignment"}),
    "forgets": (["--filter", "cache/*"], {
        "cache/resize_keeps_content": "are not what they should be", "cache/resize_all_or_nothing": "keeps memory"}),
    "careless": (["--filter", "cache/*"], {
        "cache/read_and_write/BF16": "are not what they should be",
        "cache/copy_rows/BF16": "are not what they should be",
        "cache/poison/BF16": "are not what they should be",
        "cache/move_*/BF16": ""}),
    "wrongsum": (["--filter", "ops/ADD*", "--filter", "load/*", "--filter", "memory/*"], {"ops/ADD*": ""}),
    "writes": (["--filter", "faults/*"], {
        "faults/step_*": "wrote its", "faults/random_steps": "wrote its", "faults/null_handles": "wrote its",
        "faults/objects_of_another_device": "wrote its"}),
    "tickets": (["--filter", "async/*"], {"async/tickets_rise": "after ticket"}),
    "rounding": (ALL_SUBMITTING, {"async/tickets_rise": "the floating-point control state is"}),
    "deaf": (["--filter", "async/stop_*"], {
        "async/stop_before": "gave status 0", "async/stop_among_others": "gave status 0",
        "async/stop_during": "gave status 0"}),
    "unowned": (["--filter", "poison/unowned*", "--filter", "async/*"], {"poison/unowned*": ""}),
    "wrongop": (["--filter", "faults/*"], {"faults/unknown_opcode": "names op"}),
    "nullcrash": (["--filter", "load/*"], {"load/null_destroys": "killed by signal 11 (SIGSEGV)"}),
}

problems = []


def expect(holds, sentence):
    if not holds:
        problems.append(sentence)


class Tool:
    def __init__(self, tool, broken, scratch):
        self.tool, self.broken, self.scratch = tool, broken, Path(scratch)
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)

    def plugin(self, fault, source=None):
        link = self.scratch / f"libkvasir_backend_{fault}.v0.so"
        if not link.exists():
            link.symlink_to(source or self.broken)
        return str(link)

    def run(self, *arguments):
        return subprocess.run([self.tool, *arguments], capture_output=True, text=True, timeout=300)

    def report(self, fault, *arguments, source=None):
        path = self.scratch / f"{fault}.json"
        path.unlink(missing_ok=True)
        result = self.run(self.plugin(fault, source), "--json", str(path), *arguments)
        expect(path.exists(), f"{fault}: no report: {result.stdout}{result.stderr}")
        return result, json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"cases": []}


def check_faults(tool):
    for fault, (arguments, expected) in FAULTS.items():
        result, report = tool.report(fault, *arguments)
        failed = {case["name"]: case["reason"] for case in report["cases"] if case["result"] == "fail"}
        expect(result.returncode == (1 if expected else 0), f"{fault}: exit status {result.returncode}")
        for name, reason in failed.items():
            hits = [glob for glob in expected if fnmatch.fnmatchcase(name, glob)]
            expect(hits, f"{fault}: {name} failed too: {reason}")
            expect(all(expected[glob] in reason for glob in hits), f"{fault}: {name} says '{reason}'")
            expect(name in result.stdout, f"{fault}: the text does not name {name}")
        for glob in expected:
            wanted = [case["name"] for case in report["cases"] if fnmatch.fnmatchcase(case["name"], glob)
                      and case["result"] != "unsupported"]
            expect(wanted, f"{fault}: no case {glob} was run")
            if "*" not in glob or glob == "cache/poison/*":
                expect(all(name in failed for name in wanted), f"{fault}: some of {glob} passed")
            expect(any(name in failed for name in wanted), f"{fault}: all of {glob} passed")


def check_symbols(tool, symbols):
    _, report = tool.report("good", "--filter", "load/*", source=symbols)
    failed = [case["name"] for case in report["cases"] if case["result"] == "fail"]
    expect(failed == ["load/one_symbol"], f"more symbols: failed are {failed}")


def check_no_device(tool):
    result, report = tool.report("nodevice")
    expect(result.returncode == 0, f"no device: exit status {result.returncode}")
    expect("no device: the machine has no such processor" in result.stdout, f"no device: {result.stdout}")
    expect(report.get("no_device") == "the machine has no such processor", "no device: not in the report")
    expect(report.get("device", 0) is None and report["cases"] == [], "no device: cases in the report")


def check_expected_failures(tool):
    crash = tool.plugin("crash")
    chosen = ["--filter", "cache/poison/F*"]
    result, report = tool.report("crash", *chosen, "--expect-fail", "cache/poison/*")
    expect(result.returncode == 0, "expected failures are failures")
    expect(report["totals"]["expected_failure"] == 2 and report["totals"]["fail"] == 0, "expected failures: totals")
    listed = tool.scratch / "known.txt"
    listed.write_text("# what is known\n\ncache/poison/F16\ncache/copy_rows/F32\n", encoding="utf-8")
    result, report = tool.report("crash", *chosen, "--filter", "cache/copy_rows/F32", "--expect-fail", str(listed))
    failed = {case["name"]: case["reason"] for case in report["cases"] if case["result"] == "fail"}
    expect(result.returncode == 1, "an unexpected pass is no failure")
    expect(set(failed) == {"cache/poison/F32", "cache/copy_rows/F32"}, f"unexpected pass: failed are {set(failed)}")
    expect("passed, but is listed" in failed.get("cache/copy_rows/F32", ""), "unexpected pass: no sentence")
    expect(tool.run(crash, *chosen).returncode == 1, "a crash is no failure")


def check_reports(tool):
    result, report = tool.report("good", "--filter", "load/*", "--filter", "memory/weight/*", "-v")
    for key in ("tool", "abi", "profile", "plugin", "device", "cases", "totals", "conforms"):
        expect(key in report, f"the report has no '{key}'")
    expect(report["conforms"] is True and report["plugin"]["name"] == "good", f"report: {report['plugin']}")
    for case in report["cases"]:
        expect(set(case) >= {"name", "group", "profile", "obligations", "result", "reason", "milliseconds", "figures"},
               f"a case lacks a field: {case}")
        expect(case["obligations"] and all(one.startswith("KVB-") for one in case["obligations"]),
               f"{case['name']} has the obligations {case['obligations']}")
        expect(case["name"] in result.stdout, f"-v does not name {case['name']}")
    totals = report["totals"]
    expect(totals["cases"] == len(report["cases"]) == totals["pass"], f"totals: {totals}")
    result = tool.run(tool.plugin("good"), "--filter", "load/*", "--json", "-")
    expect(json.loads(result.stdout)["conforms"] is True, "--json - does not write the report alone")
    result = tool.run(tool.plugin("good"), "--filter", "load/*", "--json", "/nowhere/report.json")
    expect(result.returncode == 2 and "/nowhere/report.json" in result.stderr, "a report that cannot be written")


def check_command_line(tool):
    listing = tool.run("--list")
    names = [line.split("\t")[0] for line in listing.stdout.splitlines()]
    expect(listing.returncode == 0 and len(names) == len(set(names)) > 100, "--list: names are not unique, or few")
    groups = {name.split("/")[0] for name in names}
    expect(groups == {"load", "memory", "ops", "poison", "groups", "program", "replay", "cache", "async", "faults",
                      "perf"}, f"--list: groups are {groups}")
    core = tool.run("--list", "--profile", "core").stdout.splitlines()
    expect(0 < len(core) < len(names) and all("\tcore\t" in line for line in core), "--list --profile core")
    one = tool.run("--list", "--filter", "load/null_host").stdout.split("\t")[0]
    expect(one == "load/null_host", f"--list --filter: {one}")
    good = tool.plugin("good")
    for arguments in ([], [good, "--profile", "half"], [good, "--filter", "nothing/*"], [good, "--timeout", "0"],
                      [good, "--no-such-option"]):
        expect(tool.run(*arguments).returncode == 2, f"exit status of {arguments}")
    missing = tool.run(str(tool.scratch / "missing.so"))
    expect(missing.returncode == 1 and "cannot be opened" in missing.stdout, f"missing plugin: {missing.stdout}")
    wrong_variant = tool.run(good, "--variant", "none")
    expect(wrong_variant.returncode == 1 and "'none'" in wrong_variant.stdout, "an unknown variant")


def main():
    tool_path, broken, symbols, scratch = sys.argv[1:]
    tool = Tool(tool_path, broken, scratch)
    check_faults(tool)
    check_no_device(tool)
    check_expected_failures(tool)
    check_reports(tool)
    check_command_line(tool)
    check_symbols(Tool(tool_path, symbols, scratch), symbols)
    print("\n".join(problems) or f"{len(FAULTS)} broken backends, each found out")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
