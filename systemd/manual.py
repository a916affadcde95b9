"""Writes a manual page to standard output, in the language of man(7): manual.py TEMPLATE PROGRAM VERSION DATE.

The template's `@COMMANDS@` becomes the `--help` of all commands of the program. `@VERSION@` and `@DATE@` become the
arguments.
"""

import pathlib
import re
import subprocess
import sys

SECTION = re.compile(r"^(Positionals|Options|Subcommands):$")
# An entry begins in column 3. Its text begins in column 31, on the next line if the entry is long.
ENTRY = re.compile(r"^  (\S.*?)(?: {2,}(\S.*))?$")
MORE = re.compile(r"^ {10,}(\S.*)$")
SAID_ALREADY = "Print this help message and exit"


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def help_of(program, path):
    # The environment is empty, since some defaults in the help come from it.
    done = subprocess.run([program, *path, "--help"], capture_output=True, text=True, timeout=30, check=True, env={})
    return done.stdout.splitlines()


def sections(lines):
    """Returns {section: [[entry, text]]} in the order of the help."""
    found, current = {}, None
    for line in lines:
        if match := SECTION.match(line):
            current = found.setdefault(match[1], [])
        elif current is not None and (match := MORE.match(line)) and current:
            current[-1][1] = f"{current[-1][1]} {match[1]}".strip()
        elif current is not None and (match := ENTRY.match(line)):
            current.append([match[1], match[2] or ""])
    return found


def entries(rows):
    text = ""
    for entry, says in rows:
        if says != SAID_ALREADY:
            text += f".TP\n.B {escaped(entry)}\n{escaped(says)}\n"
    return text


def commands(program, path=()):
    """Returns the page's part about a command and its subcommands."""
    lines = help_of(program, path)
    parts = sections(lines)
    text = ""
    if path:
        first = lines[0] if lines else ""
        text += f".SS {escaped(' '.join(path))}\n{escaped(first)}.\n"
    text += entries(parts.get("Positionals", [])) + entries(parts.get("Options", []))
    for line in lines:
        if path and line.startswith(("Example: ", "Next: ")):
            text += f".PP\n{escaped(line)}\n"
    for name, _ in parts.get("Subcommands", []):
        text += commands(program, (*path, name))
    return text


def main(template, program, version, date):
    page = pathlib.Path(template).read_text()
    page = page.replace("@VERSION@", version).replace("@DATE@", date)
    print(page.replace("@COMMANDS@\n", commands(program)), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
