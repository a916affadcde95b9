#!/usr/bin/env python3
"""Checks the house rules: which file may include which, and what no source may contain.

Reads CMake's table of modules (lines "folder name: used names") and each source below the root. Prints
a line `file:line: rule: message` for each violation. Exits 1 if it finds any.
"""

import argparse
import fnmatch
import os
import re
import sys
from pathlib import Path
from typing import Iterator, NamedTuple

import architecture

# Third-party headers and the files that may include them. `*` matches slashes, too. To give a file
# access, widen a row. For a new library, add a row. tests/ may include all of them.
THIRD_PARTY = {
    "CLI/": ["daemon/main.cc", "daemon/ctl/*.cc"],
    "curl/": ["daemon/outbound/http_client.cc", "daemon/outbound/http_connection.*", "daemon/ctl/client.cc"],
    "gtest/": [],
    "libpq-fe.h": ["store/sql/postgres_session.h"],
    "js/": ["daemon/code/engine.cc"],
    "jsapi.h": ["daemon/code/engine.cc"],
    "jsfriendapi.h": ["daemon/code/engine.cc"],
    "librdkafka/": ["queue/kafka/*"],
    "llhttp/": ["daemon/outbound/answer_reader.h"],
    "nlohmann/": ["*"],
    "openssl/": ["api/auth/jwks.cc", "daemon/delivery/webhook.cc", "store/commit/stored_steps.cc"],
    "pistache/": ["api/http/http_server*.cc"],
    "prometheus/": ["daemon/ops/labelled.*", "daemon/ops/metrics.*"],
    "seccomp.h": ["daemon/code/conversed_code.cc"],
    "simdjson.h": ["store/model/json.cc"],
    "sodium.h": ["store/*.cc", "api/auth/*.cc", "api/live/digest.cc", "daemon/data/backup.cc", "daemon/delivery/webhook.cc"],
    "spdlog/": ["daemon/ops/logging.*"],
    "systemd/": ["daemon/service/supervisor.cc"],
    "sqlite3.h": ["store/sql/fts_rank.cc", "store/sql/sqlite*.cc", "store/sql/vfs_shim.h", "store/sql/gathering_vfs.cc",
                  "store/sql/page_cache.cc"],
    "tl/expected.hpp": ["*"],
    "unicode/": ["api/*.cc", "flows/*.cc", "store/*.cc"],
    "yaml-cpp/": ["store/yaml/reader.cc"],
    "zlib.h": ["queue/file/frame.cc"],
    "zstd.h": ["store/commit/stored_steps.cc"],
}

# Headers of the system besides the standard library's, which have no dot.
SYSTEM_HEADERS = re.compile(
    r"(arpa|linux|net|netinet|sys)/|"
    r"(dirent|dlfcn|endian|errno|fcntl|grp|ifaddrs|netdb|poll|pthread|pwd|sched|signal|spawn|stdlib|string|"
    r"syslog|termios|time|unistd)\.h$")

# All modules share the types of store/model, so it may use only these libraries.
MODEL_LIBRARIES = ("nlohmann/", "simdjson.h", "sodium.h", "tl/expected.hpp")

MAX_LINES = 700
MAX_COLUMNS = 100
MAX_FUNCTION_LINES = 70
# clang-tidy checks the complexity of functions; `./dev lint` runs it.
MAX_COMPLEXITY = 25
# A room is one concern. A header and its source are one name.
MAX_NAMES = 20
MAX_INVARIANTS = 10
LONG_ROOMS = {"api/operations", "flows/nodes"}  # lists of similar files
# Rooms that may use only one room of another folder.
ONLY_ROOM = {("daemon_turns", "api"): "api_live"}
TOP_FOLDERS = ("config", "store", "queue", "flows", "api", "daemon", "systemd", "tests")
VAGUE_FOLDERS = {"common", "helper", "helpers", "misc", "util", "utils"}
SKIPPED_FOLDERS = {".git", "build", "Testing", "__pycache__", "node_modules"}
CPP = (".cc", ".h")
CODE = CPP + (".py", ".sh", ".sql", ".cmake", ".js")
CODE_NAMES = ("CMakeLists.txt", "dev", "run")

INCLUDE = re.compile(r'\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')
# The literals have two parts, so that the rule does not find this file.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b|(?i:\bfor" r" now\b)")
SLEEP = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep)\b")
DETACH = re.compile(r"[Tt]hread\w*(\(.*\)|\{.*\})?(\.|->)detach\(\)")

A_TEST = re.compile(r"^(?:TEST(?:_F|_P)?\((\w+),\s*(\w+)\)|class (\w+)\(|\s+def (test_\w+)\()", re.MULTILINE)
NAMED_TEST = re.compile(r"`([A-Z]\w*\.[A-Z]\w*|test_\w+)`")
# "Kept by:" names the tests that fail without an invariant, up to the period. A name is a suite, a test or a file.
A_KEEPER = re.compile(r"[A-Z]\w*(?:\.\w+)?|test_\w+(?:\.py)?|tests/[\w/]+\.py")
KEPT_BY = re.compile(rf"Kept by:((?:[\s/`,]|and\b|{A_KEEPER.pattern})*)")
# A link to a file in Markdown, and a file name in a code span, where `{h,cc}` means two files.
LINK = re.compile(r"\]\(([^):#\s]+)[)#]")
NAMED_FILE = re.compile(r"`([\w./-]+\.(?:h|cc|py|sql|md|\{h,cc\}))`")
# Files that a reader of CONTRIBUTING.md creates, and files of the system.
NOT_OURS = {"show_project.cc", "echo.cc", "sqlite3.h"}

# clang-format lets a function begin in the first column. It ends with a brace in the first column.
FUNCTION = re.compile(r"[A-Za-z_][^;]*\([^;]*$")


class Violation(NamedTuple):
    file: str
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}: {self.message}"


class Module(NamedTuple):
    folder: str
    name: str
    uses: frozenset


def read_table(text: str) -> list:
    """Returns the modules, inner folders first, so that the first match is the closest."""
    modules = []
    for line in filter(None, map(str.strip, text.splitlines())):
        left, _, uses = line.partition(":")
        folder, name = left.split()
        modules.append(Module(folder, name, frozenset(uses.split())))
    return sorted(modules, key=lambda module: -len(module.folder))


def module_of(path: str, modules: list):
    return next((m for m in modules if path.startswith(m.folder + "/")), None)


def files_below(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
        for name in sorted(names):
            yield (Path(folder) / name).relative_to(root).as_posix()


def check_own_include(root: Path, file: str, target: str, modules: list) -> Iterator[tuple]:
    if ".." in target.split("/"):
        yield "include-path", f'"{target}" has "..": begin includes at the root'
        return
    if not (root / target).is_file():
        yield "include-path", f'the root has no file "{target}": begin includes at the root'
        return
    if file.startswith("tests/"):
        return
    own, used = module_of(file, modules), module_of(target, modules)
    if own is None:
        yield "include-edge", "this file belongs to no conversed_module"
    elif used is None:
        yield "include-edge", f'"{target}" belongs to no conversed_module'
    elif used.name != own.name and used.name not in own.uses:
        yield "include-edge", f'{own.name} does not USE {used.name} ("{target}")'


def check_library_include(file: str, target: str) -> Iterator[tuple]:
    row = next((prefix for prefix in THIRD_PARTY if target.startswith(prefix)), None)
    if row is None:
        if "." in target and not SYSTEM_HEADERS.match(target):
            yield "include-library", f"<{target}> has no row in THIRD_PARTY (tests/tidy/tidy.py)"
        return
    if file.startswith("tests/"):
        return
    if not any(fnmatch.fnmatchcase(file, allowed) for allowed in THIRD_PARTY[row]):
        yield "include-library", f"this file may not include <{target}>: see THIRD_PARTY (tests/tidy/tidy.py)"
    elif file.startswith("store/model/") and not target.startswith(MODEL_LIBRARIES):
        yield "include-library", f"store/model may not include <{target}>, since all modules share store/model"


def check_line(root: Path, file: str, line: str, modules: list) -> Iterator[tuple]:
    """Yields (rule, message) for one line of code."""
    if found := UNFINISHED.search(line):
        yield "unfinished", f'"{found.group()}": finish it or open an issue'
    if not file.endswith(CPP):
        return
    # Longer lines of tests are data, since clang-format wraps code.
    if len(line) > MAX_COLUMNS and not file.startswith("tests/"):
        yield "columns", f"{len(line)} columns; at most {MAX_COLUMNS}"
    if file.startswith("tests/") and (found := SLEEP.search(line)):
        yield "sleep", f"{found.group()} in a test: wait for events, never for time"
    if DETACH.search(line):
        yield "detach", "a detached thread outlives its owner: keep a std::jthread"
    if found := INCLUDE.match(line):
        own, library = found.groups()
        yield from check_own_include(root, file, own, modules) if own else check_library_include(file, library)


def check_file(root: Path, file: str, modules: list) -> Iterator[Violation]:
    if not file.endswith(CODE) and Path(file).name not in CODE_NAMES:
        return
    lines = (root / file).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        for rule, message in check_line(root, file, line, modules):
            yield Violation(file, number, rule, message)
    if len(lines) > MAX_LINES:
        yield Violation(file, len(lines), "lines", f"{len(lines)} lines; at most {MAX_LINES}")
    if file.endswith(CPP):
        yield from check_functions(file, lines)
    if file.endswith(".h") and "#pragma once" not in lines:
        yield Violation(file, 1, "pragma-once", "add #pragma once")


def names_of_tests(root: Path, files: list) -> set:
    """Returns the names of test files, suites, and tests with and without their suite."""
    names = set()
    for file in files:
        if not file.startswith("tests/") or not file.endswith((".cc", ".py")):
            continue
        names |= {file, Path(file).name}
        group = ""
        for suite, claim, group_begun, method in A_TEST.findall((root / file).read_text(encoding="utf-8")):
            group = group_begun or group
            names |= {group, method, f"{group}.{method}"} if method else {suite or group, f"{suite}.{claim}"}
    return names


def check_functions(file: str, lines: list) -> Iterator[Violation]:
    first = 0
    for number, line in enumerate(lines, 1):
        if FUNCTION.match(line):
            first = number
        elif line == "}" and first:
            if number - first >= MAX_FUNCTION_LINES:
                yield Violation(file, first, "function-lines",
                                f"{number - first + 1} lines; at most {MAX_FUNCTION_LINES}")
            first = 0


def check_complexity(root: Path, files: list) -> Iterator[Violation]:
    if ".clang-tidy" not in files:
        return
    limit = re.search(r"function-cognitive-complexity\.Threshold, value: (\d+)",
                      (root / ".clang-tidy").read_text(encoding="utf-8"))
    if limit is None or int(limit[1]) > MAX_COMPLEXITY:
        yield Violation(".clang-tidy", 1, "complexity", f"set the complexity of functions to at most {MAX_COMPLEXITY}")


def check_named_tests(root: Path, files: list) -> Iterator[Violation]:
    """Checks that named tests exist. Without the test, a threat or an invariant would only look defended."""
    names = names_of_tests(root, files)
    for file in files:
        if not file.endswith((".h", ".md")):
            continue
        text = (root / file).read_text(encoding="utf-8")
        named = []
        for kept in KEPT_BY.finditer(text):
            found = [(kept.start(1) + test.start(), test[0]) for test in A_KEEPER.finditer(kept[1])]
            named += found or [(kept.start(), "the text after Kept by")]
        if file in ("SECURITY.md", architecture.DOCUMENT):
            named += [(test.start(), test[1]) for test in NAMED_TEST.finditer(text)]
        for at, name in named:
            if name not in names:
                yield Violation(file, text.count("\n", 0, at) + 1, "named-test", f"tests/ has no test {name}")


def check_named_files(root: Path, files: list) -> Iterator[Violation]:
    """Checks that the targets of links exist, and the files in code spans."""
    ends = {"/".join(Path(file).parts[-depth:]) for file in files for depth in range(1, len(Path(file).parts) + 1)}
    for file in files:
        if not file.endswith(".md") or file == "CHANGELOG.md":
            continue
        for number, line in enumerate((root / file).read_text(encoding="utf-8").splitlines(), 1):
            missing = [link for link in LINK.findall(line) if not (root / file).parent.joinpath(link).exists()]
            missing += [name for name in NAMED_FILE.findall(line) if Path(name).name not in NOT_OURS
                        and not {name.replace("{h,cc}", end) for end in ("h", "cc")} <= ends]
            for name in missing:
                yield Violation(file, number, "named-file", f"the tree has no file {name}")


def check_rooms(files: list, modules: list) -> Iterator[Violation]:
    for module in modules:
        names = {Path(file).name.split(".")[0] for file in files
                 if file.endswith(CPP) and Path(file).parent.as_posix() == module.folder}
        if len(names) > MAX_NAMES and module.folder not in LONG_ROOMS:
            yield Violation(module.folder, 1, "room-size", f"{len(names)} names; at most {MAX_NAMES}")
        for (name, folder), allowed in ONLY_ROOM.items():
            for used in sorted(module.uses if module.name == name else ()):
                if re.fullmatch(rf"{folder}(_\w+)?", used) and used != allowed:
                    yield Violation(module.folder, 1, "room-edge", f"uses {used}; of {folder} it may use only {allowed}")


def check_readmes(root: Path, files: list) -> Iterator[Violation]:
    """Limits the invariants of a README. The invariants of one type belong in its header."""
    for file in files:
        if Path(file).name != "README.md" or file.startswith("tests/"):
            continue
        sections = re.split(r"^#+ ", (root / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
        listed = sum(len(re.findall(r"^(?:[-*]|\d+\.) ", section, re.MULTILINE)) for section in sections
                     if "nvariant" in section.partition("\n")[0])
        if listed > MAX_INVARIANTS:
            yield Violation(file, 1, "invariants",
                            f"{listed} invariants; at most {MAX_INVARIANTS}: move the others to the headers of their types")


def check_cycles(modules: list) -> Iterator[Violation]:
    """Removes modules that use no other remaining module, until none is left or the rest is a cycle."""
    rest = {module.name: module for module in modules}
    while free := [name for name, module in rest.items() if not module.uses & rest.keys()]:
        for name in free:
            del rest[name]
    if rest:
        folder = min(module.folder for module in rest.values())
        yield Violation(folder, 1, "room-cycle", f"these modules use each other in a cycle: {' '.join(sorted(rest))}")


def check_tree(root: Path, modules: list) -> Iterator[Violation]:
    files = list(files_below(root))
    yield from check_rooms(files, modules)
    yield from check_cycles(modules)
    yield from check_readmes(root, files)
    folders = {parent.as_posix() for file in files for parent in Path(file).parents} - {"."}
    for folder in sorted(folders):
        if Path(folder).name in VAGUE_FOLDERS:
            yield Violation(folder, 1, "vague-folder", "name the folder after its contents")
    for folder in TOP_FOLDERS:
        if folder in folders and f"{folder}/README.md" not in files:
            yield Violation(folder, 1, "readme", "add a README.md with purpose, files and invariants")
    yield from check_complexity(root, files)
    yield from check_named_tests(root, files)
    yield from check_named_files(root, files)
    for document, check in ((architecture.DOCUMENT, architecture.check_architecture),
                            (architecture.GLOSSARY, architecture.check_glossary)):
        for line, rule, message in check(root, files) if document in files else []:
            yield Violation(document, line, rule, message)
    for file in files:
        yield from check_file(root, file, modules)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--table", type=Path, required=True, help="include_table.txt of a build folder")
    options = parser.parse_args()
    try:
        modules = read_table(options.table.read_text(encoding="utf-8"))
    except OSError as error:
        sys.exit(f"tidy: {error}. Run ./dev build first")
    violations = list(check_tree(options.root, modules))
    for violation in violations:
        print(violation)
    print(f"{len(violations)} violations" if violations else "tidy")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
