#!/usr/bin/env python3
"""Writes the client x feature table between the markers of the README from the suites' logs.

    table.py LOGS README SUITE..."""
import os
import re
import sys

FEATURES = ["compression", "acks", "idempotence", "keys", "headers", "offsets", "timestamps",
            "groups", "topics", "configs", "cluster", "files"]
BEGIN, END = "<!-- table: written by scripts/compat -->", "<!-- end of table -->"


def rows(log, suite):
    """(client, {feature: [passed, failed]}) for each client that the log names."""
    found = []
    if os.path.exists(log):
        for line in open(log, encoding="utf-8", errors="replace"):
            kind, _, rest = line.strip().partition(" ")
            feature = rest.partition(" ")[0]
            if kind == "client":
                found.append((rest, {}))
            elif kind in ("PASS", "FAIL") and found and feature in FEATURES:
                cell = found[-1][1].setdefault(feature, [0, 0])
                cell[kind == "FAIL"] += 1
    return found or [(suite, {})]


def cell(counts):
    if counts is None:
        return "not run"
    passed, failed = counts
    return f"{passed} of {passed + failed}" if failed else str(passed)


def main():
    logs, readme, suites = sys.argv[1], sys.argv[2], sys.argv[3:]
    lines = ["| client | " + " | ".join(FEATURES) + " |", "|---" * (len(FEATURES) + 1) + "|"]
    for suite in suites:
        for client, seen in rows(os.path.join(logs, f"{suite}.log"), suite):
            lines.append(f"| {client} | " + " | ".join(cell(seen.get(f)) for f in FEATURES) + " |")
    text = open(readme, encoding="utf-8").read()
    new = f"{BEGIN}\n" + "\n".join(lines) + f"\n{END}"
    text, count = re.subn(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: new, text, flags=re.DOTALL)
    if count != 1:
        sys.exit(f"{readme}: the markers of the table are missing")
    open(readme, "w", encoding="utf-8").write(text)


main()
