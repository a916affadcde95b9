#!/usr/bin/env python3
"""Counts the parts of a commit: files and lines of each room, large types, tables, words of READMEs.

    tests/tidy/census.py [COMMIT]      the default is HEAD
"""

import argparse
import io
import re
import subprocess
import tarfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("config", "store", "queue", "flows", "api", "daemon")
MAX_FIELDS = 15
COMMENT = re.compile(r"//[^\n]*")
TYPE = re.compile(r"\b(struct|class) (?:\[\[\w+\]\] )?([\w:]+)(?: final)?(?: : [^{;]*)? \{")
NO_FIELD = re.compile(r"^(using|static|friend|enum|struct|class|template|typedef|\[\[nodiscard\]\] static)\b")
TABLE_CHANGE = re.compile(r"\b(CREATE|DROP) (?:VIRTUAL )?TABLE (?:IF (?:NOT )?EXISTS )?(\w+)|ALTER TABLE (\w+) RENAME TO (\w+)")


def files_of(commit: str) -> dict:
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", commit], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {member.name: tar.extractfile(member).read().decode("utf-8", "replace")
                for member in tar if member.isfile() and member.name.endswith((".cc", ".h", ".sql", ".md"))}


def body_from(text: str, begin: int) -> str:
    depth = 0
    for at in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[begin + 1:at]
    return text[begin + 1:]


def public_fields(kind: str, body: str) -> int:
    """Returns the number of data members in a type's public part."""
    while (flat := re.sub(r"\{[^{}]*\}", ";" if "\n" in body else "", body)) != body:
        body = flat
    while (flat := re.sub(r"<[^<>]*>", "", body)) != body:
        body = flat
    public = kind == "struct"
    fields = 0
    for part in re.split(r"\b(public|private|protected):", body):
        if part in ("public", "private", "protected"):
            public = part == "public"
        elif public:
            statements = (" ".join(statement.split("=")[0].split()) for statement in part.split(";"))
            fields += sum(1 for statement in statements
                          if " " in statement and "(" not in statement and not NO_FIELD.match(statement))
    return fields


def large_types(files: dict) -> list:
    found = []
    for name, text in sorted(files.items()):
        if name.endswith(".h") and name.split("/")[0] in PRODUCT:
            text = COMMENT.sub("", text)
            for match in TYPE.finditer(text):
                fields = public_fields(match[1], body_from(text, match.end() - 1))
                if fields > MAX_FIELDS:
                    found.append((fields, match[2], name))
    return sorted(found, reverse=True)


def tables(files: dict) -> set:
    """Returns the tables of SQLite's schema after all migrations."""
    names = set()
    for name, text in sorted(files.items()):
        if not name.startswith("store/migrations/") or not name.endswith(".sql") or "postgres" in name:
            continue
        for change, table, renamed, to in TABLE_CHANGE.findall(text):
            names.discard(renamed if renamed else table if change == "DROP" else "")
            if renamed or change == "CREATE":
                names.add(to or table)
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", default="HEAD")
    files = files_of(parser.parse_args().commit)
    sources, lines = Counter(), Counter()
    for name, text in files.items():
        if name.endswith((".cc", ".h")) and name.split("/")[0] in PRODUCT:
            sources[str(Path(name).parent)] += 1
            lines[str(Path(name).parent)] += text.count("\n")
    print("room                             files   lines of .cc and .h")
    for room in sorted(lines):
        print(f"{room:32} {sources[room]:5} {lines[room]:7}")
    print(f"{'all':32} {sum(sources.values()):5} {sum(lines.values()):7}\n")
    large = large_types(files)
    print(f"public types with more than {MAX_FIELDS} fields: {len(large)}")
    for fields, name, file in large:
        print(f"  {fields:3} {name} ({file})")
    known = sorted(tables(files))
    print(f"tables of the schema: {len(known)}")
    readmes = {name: len(text.split()) for name, text in files.items() if name.endswith("README.md")}
    print(f"words in {len(readmes)} READMEs: {sum(readmes.values())}")


if __name__ == "__main__":
    main()
