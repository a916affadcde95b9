#!/usr/bin/env python3
"""Plants each kind of violation in a clean tree and expects tidy to find it. Without these tests a rule with
a broken pattern would look like a clean tree."""

import re
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import census  # noqa: E402
import tidy  # noqa: E402

TABLE = "store/model model: \nstore store: model\nflows flows: model expression\nflows/expression expression: \n"

CLEAN = {
    "store/README.md": "# store\n",
    "flows/README.md": "# flows\n",
    "tests/README.md": "# tests\n",
    "store/model/event.h": "#pragma once\n\n#include <nlohmann/json_fwd.hpp>\n#include <string>\n",
    "store/sql/sqlite.cc": '#include <sqlite3.h>\n#include <unistd.h>\n#include "store/model/event.h"\n',
    "flows/expression/value.h": "#pragma once\n",
    "flows/turn/turn.cc": '#include "flows/expression/value.h"\n#include "store/model/event.h"\n',
    "tests/unit/turn_test.cc": '#include <gtest/gtest.h>\n\n#include "flows/turn/turn.h"\nTEST(TurnTest, Ends) {}\n',
    "flows/turn/turn.h": "#pragma once\n",
}

PLANTED = [
    # (rule, file, text)
    ("include-path", "flows/up.cc", '#include "../store/model/event.h"\n'),
    ("include-path", "flows/beside.cc", '#include "turn.h"\n'),
    ("include-edge", "flows/reach.cc", '#include "store/store.h"\n'),
    ("include-edge", "flows/expression/outer.cc", '#include "flows/turn/turn.h"\n'),
    ("include-edge", "store/model/upward.cc", '  #  include "store/store.h"\n'),
    ("include-edge", "stray/stray.cc", '#include "store/store.h"\n'),
    ("include-library", "flows/sql.cc", "#include <sqlite3.h>\n"),
    ("include-library", "store/sql/sql.h", "#pragma once\n#include <sqlite3.h>\n"),
    ("include-library", "store/model/sql.cc", "#include <sqlite3.h>\n"),
    ("include-library", "store/gtest.cc", "#include <gtest/gtest.h>\n"),
    ("include-library", "store/new.cc", "#include <zlib.h>\n"),
    ("pragma-once", "store/guard.h", "#ifndef X\n#define X\n#endif\n"),
    ("lines", "store/long.cc", "\n" * 701),
    ("columns", "store/wide.cc", "// " + "x" * 98 + "\n"),
    ("vague-folder", "store/util/x.md", ""),
    ("sleep", "tests/unit/nap_test.cc", "std::this_thread::sleep_for(1s);\n"),
    ("detach", "store/thread.cc", "std::thread(run).detach();\n"),
    ("detach", "store/worker.cc", "worker_thread_.detach();\n"),
    ("unfinished", "store/later.cc", "// TO" "DO: later\n"),
    ("unfinished", "store/later.sql", "-- good enough for" " now\n"),
    ("unfinished", "dev", "# FIX" "ME\n"),
    ("named-test", "SECURITY.md", "| guess | lock-out | `TurnTest.Ends`, `TurnTest.Never` |\n"),
    ("named-test", "store/kept.h", "#pragma once\n// Kept by: TurnTest.Ends,\n// TurnTest.Never.\n"),
    ("named-test", "store/kept.md", "- One writer. Kept by: a test.\n"),
    ("document-name", "docs/glossary.md", "| Term | Meaning | Type |\n| a | Of `Nothing`. | `store::Nothing` |\n"),
    ("named-file", "docs/a.md", "See [the README](../store/README.md#invariants) and [more](more.md).\n"),
    ("named-file", "store/sql/README.md", "| `sqlite.cc`, `sql/sqlite.{h,cc}` | SQLite |\n"),
    ("function-lines", "store/function.cc", "void f() {\n" + "  g();\n" * 69 + "}\n"),
    ("complexity", ".clang-tidy", "  - {key: readability-function-cognitive-complexity.Threshold, value: 26}\n"),
    ("invariants", "store/sql/README.md", "# sql\n\n## Invariants\n\n" + "1. One.\n" * 6 + "\n### More invariants\n\n" + "- One.\n" * 5),
    ("readme", "queue/log.h", "#pragma once\n"),
]
# These need a table or several files.
PLANTED_ROOMS = {"room-size", "room-edge", "room-cycle"}
# Rules of architecture.py.
PLANTED_NAMES = {"document-name"}


class TidyTest(unittest.TestCase):
    def violations_of(self, *extra: tuple) -> list:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in [*CLEAN.items(), ("store/store.h", "#pragma once\n"), *extra]:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            return list(tidy.check_tree(root, tidy.read_table(TABLE)))

    def test_a_clean_tree_has_no_violations(self):
        self.assertEqual(self.violations_of(), [])

    def test_each_planted_violation_is_found_and_nothing_else(self):
        for rule, file, text in PLANTED:
            with self.subTest(rule=rule, file=file):
                self.assertEqual([v.rule for v in self.violations_of((file, text))], [rule])

    def test_a_room_has_at_most_twenty_names(self):
        full = [(f"store/name{i}.h", "#pragma once\n") for i in range(tidy.MAX_NAMES - 1)]
        self.assertEqual(self.violations_of(*full, ("store/name1.cc", "")), [])
        self.assertEqual([v.rule for v in self.violations_of(*full, ("store/more.h", "#pragma once\n"))], ["room-size"])

    def test_rooms_do_not_use_each_other_in_a_cycle(self):
        modules = tidy.read_table("store a: b\nqueue b: c\nflows c: a\napi d: a\n")
        self.assertEqual([v.rule for v in tidy.check_cycles(modules)], ["room-cycle"])
        self.assertEqual(list(tidy.check_cycles(tidy.read_table("store a: b\nqueue b: \n"))), [])

    def test_turns_do_not_use_http(self):
        allowed = tidy.read_table("daemon/turns daemon_turns: model api_live\n")
        self.assertEqual(list(tidy.check_rooms([], allowed)), [])
        for used in ("api", "api_http"):
            with self.subTest(used=used):
                modules = tidy.read_table(f"daemon/turns daemon_turns: model {used}\n")
                self.assertEqual([v.rule for v in tidy.check_rooms([], modules)], ["room-edge"])

    def test_every_rule_is_planted(self):
        source = Path(tidy.__file__).read_text(encoding="utf-8")
        rules = {rule for rule, _, _ in PLANTED} - PLANTED_NAMES | PLANTED_ROOMS
        for rule in rules:
            self.assertIn(f'"{rule}"', source)
        yielded = set(re.findall(r'(?:yield |number, |lines\), |1, |first, )"([a-z-]+)"', source))
        self.assertEqual(yielded, rules)

    def test_a_file_within_the_limits_is_no_violation(self):
        self.assertEqual(self.violations_of(
            ("store/kept.h", "#pragma once\n// Kept by: TurnTest.Ends,\n// test_chat.py Chat.test_answers, Chat,\n"
             "// tests/integration/test_chat.py. Done.\n"),
            ("tests/integration/test_chat.py", "class Chat(World):\n    def test_answers(self):\n"),
            ("store/function.cc", "void f() {\n" + "  g();\n" * 68 + "}\n"),
            ("store/sql/README.md", "# sql\n\n- A list.\n\n## Invariants\n\n" + "- One.\n  More of it.\n" * 10),
            (".clang-tidy", "  - {key: readability-function-cognitive-complexity.Threshold, value: 25}\n")), [])

    def test_detach_of_another_object_is_no_violation(self):
        self.assertEqual(self.violations_of(("store/buffer.cc", "buffer_.detach();\n")), [])

    def test_tests_may_include_all_libraries(self):
        self.assertEqual(self.violations_of(("tests/bench/x.cc", "#include <curl/curl.h>\n")), [])

    def test_the_closest_module_counts(self):
        modules = tidy.read_table(TABLE)
        self.assertEqual(tidy.module_of("flows/expression/value.h", modules).name, "expression")
        self.assertEqual(tidy.module_of("flows/turn/turn.h", modules).name, "flows")
        self.assertIsNone(tidy.module_of("flowsy/turn.h", modules))

    def test_the_census_counts_public_fields_and_remaining_tables(self):
        fields = "".join(f"  std::function<void(int)> f{i} = {{}};\n" for i in range(16))
        header = ("struct Large {\n  using X = int;\n  void run();\n" + fields + "};\n"
                  "class Hidden {\n public:\n  int shown = 0;\n private:\n" + fields + "};\n")
        self.assertEqual(census.large_types({"store/a.h": header, "tests/a.h": header}), [(16, "Large", "store/a.h")])
        steps = {"store/migrations/1.sql": "CREATE TABLE a (x INT);\nCREATE TABLE b (x INT);\n",
                 "store/migrations/2.sql": "CREATE TABLE c (x INT); DROP TABLE b; ALTER TABLE c RENAME TO b; DROP TABLE a;\n"}
        self.assertEqual(census.tables(steps), {"b"})


if __name__ == "__main__":
    unittest.main()
