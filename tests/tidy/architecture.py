"""Checks docs/architecture.md against the code: its length, its names, and its state diagrams.

The table above a diagram lists the diagram's states, and the columns that hold them. The labels of
the arrows name the functions whose SQL writes these columns. tests/unit/store/life_cycle_test.cc
drives the store through the arrows.
"""

import re
from pathlib import Path
from typing import Iterator, NamedTuple

DOCUMENT = "docs/architecture.md"
GLOSSARY = "docs/glossary.md"
SCHEMA = "store/migrations/001_schema/"
MAX_WORDS = 2500
CODE_FOLDERS = ("config/", "store/", "queue/", "flows/", "api/", "daemon/")
DIAGRAMS = ("Output", "Call", "Timer", "Job", "Partition")

SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
COLUMN = re.compile(r"`(\w+)(?:\.(\w+))?`(?: = (\d+))?")
ARROW = re.compile(r"^\s*(\S+) --> ([\w*\[\]]+)(?:: (.*))?$", re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|--[^\n]*")
TABLE = re.compile(r"CREATE TABLE (\w+) \((.*?)\n?\)(?: WITHOUT ROWID)?;", re.DOTALL)
# The name of a function or a constant whose definition begins in the first column.
DEFINED = re.compile(r"^(?!using|namespace|template|static_assert)[A-Za-z_][^\n;=]*?(\w+)(?:\(| =)", re.MULTILINE)
WRITE = re.compile(r'\b(?:INSERT INTO (\w+)|DELETE FROM (\w+)|UPDATE (\w+) SET)([^"]*)')


class Diagram(NamedTuple):
    line: int
    text: str     # the text of its section
    rows: list    # (states, text that names their columns)
    arrows: list  # (from, to, names)

    def columns(self) -> set:
        """Returns (table, column) of the states. The column is empty if the row itself is the state."""
        return {(table, column) for _, held in self.rows for table, column, _ in COLUMN.findall(held)}

    def tables(self) -> set:
        return {table for table, _ in self.columns()}

    def names(self) -> set:
        """Returns the labels of arrows, and the words of the section's code spans."""
        labels = {name for _, _, names in self.arrows for name in names}
        return labels | {word for span in SPAN.findall(self.text) for word in re.findall(r"\w+", span)}


class Write(NamedTuple):
    function: str
    table: str
    columns: frozenset  # columns that an UPDATE sets; empty for INSERT and DELETE
    place: str


def read_diagrams(text: str) -> dict:
    diagrams = {}
    for heading in re.finditer(r"^### (.+)$", text, re.MULTILINE):
        section = re.split(r"^##", text[heading.end():], maxsplit=1, flags=re.MULTILINE)[0]
        if "stateDiagram" not in section:
            continue
        rows = [([state.strip() for state in states.split(",")], held)
                for states, held in re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", section, re.MULTILINE)][2:]
        arrows = [(source, target, [name.strip() for name in names.split(",") if name])
                  for source, target, names in ARROW.findall(section)]
        diagrams[heading[1]] = Diagram(text.count("\n", 0, heading.start()) + 1, section, rows, arrows)
    return diagrams


def read_writes(file: str, source: str) -> list:
    """Returns the statements of a file that write tables, each with its function."""
    source = re.sub(r'"\s*\n\s*"', "", COMMENT.sub("", source))
    starts = [(match.start(), match[1]) for match in DEFINED.finditer(source)]
    writes = []
    for found in WRITE.finditer(source):
        inserted, deleted, updated, statement = found.groups()
        function = next((name for start, name in reversed(starts) if start < found.start()), "")
        table = inserted or deleted or updated
        if not updated:
            writes.append(Write(function, table, frozenset(), file))
            _, _, statement = statement.partition(" DO UPDATE SET")
        if statement:
            writes.append(Write(function, table, frozenset(re.findall(r"(\w+) = ", statement.split(" WHERE ")[0])), file))
    return writes


class Code:
    """The product's sources without comments."""

    def __init__(self, root: Path, files: list):
        self.files = set(files)
        self.folders = {parent.as_posix() for file in files for parent in Path(file).parents}
        self.texts = {file: COMMENT.sub("", (root / file).read_text(encoding="utf-8")) for file in files
                      if file.startswith(CODE_FOLDERS) and file.endswith((".h", ".cc", ".sql"))}
        self.all = "\n".join(self.texts.values())
        self.words = set(re.findall(r"[A-Za-z_]\w*", self.all))
        self.suites = {suite for file in files if file.startswith("tests/") and file.endswith(".cc")
                       for suite in re.findall(r"^TEST(?:_F|_P)?\((\w+),", (root / file).read_text(encoding="utf-8"),
                                               re.MULTILINE)}
        self.tables = {}
        for file in sorted(self.texts):
            if file.startswith(SCHEMA) and file.count("/") == SCHEMA.count("/"):
                self.tables.update(TABLE.findall(self.texts[file]))
        self.writes = [write for file, text in sorted(self.texts.items()) if file.endswith((".cc", ".h"))
                       for write in read_writes(file, (root / file).read_text(encoding="utf-8"))]

    def has(self, name: str) -> bool:
        """Returns whether the code has a file, folder, table, type, function or protocol text of this name."""
        if name.startswith("/") or "-" in name:
            return name in self.all
        if "/" in name or name in self.files:
            return name.rstrip("/") in self.files | self.folders
        if re.fullmatch(r"[A-Z]\w*\.[A-Z]\w*", name):
            return True  # a test: the rule named-test checks it
        if "." in name:
            table, _, column = name.partition(".")
            return re.search(rf"^\s*{re.escape(column)} ", self.tables.get(table, ""), re.MULTILINE) is not None
        if "::" in name:
            owner, _, member = name.rpartition("::")
            owner = owner.rpartition("::")[2]
            declared = re.compile(rf"\b(?:class|struct|enum class|namespace) (?:\w+::)*{re.escape(owner)}\b")
            return any(declared.search(text) and re.search(rf"\b{re.escape(member)}\b", text)
                       for text in self.texts.values())
        return name in self.words or name in self.suites

    def check_values(self, table: str, column: str) -> set:
        found = re.search(rf"CHECK \({column} IN \(([^)]*)\)\)", self.tables.get(table, ""))
        return set(re.findall(r"\w+", found[1])) if found else set()


def check_names(text: str, code: Code) -> Iterator[tuple]:
    in_diagram = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            in_diagram = not in_diagram
        for span in [] if in_diagram else SPAN.findall(line):
            name = span.removesuffix("()")
            if re.fullmatch(r"[\w./:-]+", name) and not code.has(name):
                yield number, "document-name", f"the code has no `{span}`"


def check_diagram(name: str, diagram: Diagram, code: Code) -> Iterator[tuple]:
    """Checks the states of one diagram against its table, the schema and the SQL."""
    drawn = {state for source, target, _ in diagram.arrows for state in (source, target)} - {"[*]"}
    listed = [state for states, _ in diagram.rows for state in states]
    if drawn != set(listed) or len(listed) != len(set(listed)):
        yield f"{name}: the diagram has the drawn states {sorted(drawn)}, the table has {sorted(listed)}"
    values = {}
    for states, held in diagram.rows:
        for table, column, value in COLUMN.findall(held):
            values.setdefault((table, column), set()).update([value] if value else states)
    for (table, column), held in values.items():
        if table not in code.tables:
            yield f"{name}: the schema has no table {table}"
        allowed = code.check_values(table, column) if column else set()
        if allowed and allowed != held:
            yield f"{name}: {table}.{column} may be {sorted(allowed)} in the schema, the table has {sorted(held)}"
    writers = {write.function for write in code.writes if write.table in diagram.tables()}
    for _, _, names in diagram.arrows:
        for label in names:
            if label not in writers:
                yield f"{name}: the function {label} writes none of the tables {sorted(diagram.tables())}"


def check_writes(diagrams: dict, code: Code) -> Iterator[tuple]:
    """Checks each statement that may change a state against the diagrams of its table."""
    for write in code.writes:
        of_table = [diagram for diagram in diagrams.values() if write.table in diagram.tables()]
        if not of_table:
            continue
        words = {name for diagram in of_table for name in diagram.names()}
        states = {column for diagram in of_table for table, column in diagram.columns() if table == write.table}
        changes = not write.columns or write.columns & states
        if changes and write.function not in words:
            yield (f"{write.function} ({write.place}) writes {write.table}, but no diagram of that table names the "
                   "function: add an arrow for it")
        for column in sorted(write.columns - words):
            yield f"{write.function} ({write.place}) changes {write.table}.{column}, but no diagram's section names the column"


def check_document(text: str, code: Code) -> Iterator[tuple]:
    """Yields (line, rule, message)."""
    words = len(re.findall(r"\S*\w\S*", text))
    if words > MAX_WORDS:
        yield 1, "document-length", f"{words} words; at most {MAX_WORDS}, which take 15 minutes to read"
    yield from check_names(text, code)
    diagrams = read_diagrams(text)
    for missing in [name for name in DIAGRAMS if name not in diagrams]:
        yield 1, "state-diagram", f"the state diagram is missing: {missing}"
    for name, diagram in diagrams.items():
        for message in check_diagram(name, diagram, code):
            yield diagram.line, "state-diagram", message
    for message in check_writes(diagrams, code):
        yield 1, "state-diagram", message


def check_architecture(root: Path, files: list) -> Iterator[tuple]:
    text = (root / DOCUMENT).read_text(encoding="utf-8")
    picture = re.search(r"^```\n.*?^```$", text, re.MULTILINE | re.DOTALL)
    if picture is None or picture[0] not in (root / "README.md").read_text(encoding="utf-8"):
        yield 1, "picture", "the first picture differs from the one in README.md: change both"
    yield from check_document(text, Code(root, files))


def check_glossary(root: Path, files: list) -> Iterator[tuple]:
    """Checks the types in the last column of the glossary."""
    lines = (root / GLOSSARY).read_text(encoding="utf-8").splitlines()
    types = "\n".join(line.split(" | ")[-1] if line.startswith("|") else "" for line in lines)
    yield from check_names(types, Code(root, files))
