#!/usr/bin/env python3
"""Changes only the architecture document, or only the code, and expects the rules to find the difference."""

import copy
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import architecture  # noqa: E402
import tidy  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


class ArchitectureTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = (ROOT / architecture.DOCUMENT).read_text(encoding="utf-8")
        cls.code = architecture.Code(ROOT, list(tidy.files_below(ROOT)))

    def expect(self, rule: str, words: str, text: str = "", code: architecture.Code = None):
        found = list(architecture.check_document(text or self.text, code or self.code))
        self.assertTrue(found, "no rule found the difference")
        for _, found_rule, message in found:
            self.assertEqual(found_rule, rule)
            self.assertIn(words, message)

    def changed(self, old: str, new: str) -> str:
        self.assertIn(old, self.text)
        return self.text.replace(old, new)

    def with_write(self, function: str, table: str, *columns: str) -> architecture.Code:
        code = copy.copy(self.code)
        code.writes = [*code.writes, architecture.Write(function, table, frozenset(columns), "store/x.cc")]
        return code

    def test_the_document_agrees_with_the_code(self):
        self.assertEqual(list(architecture.check_document(self.text, self.code)), [])

    def test_a_name_without_code_is_found(self):
        for name in ("queue/none.h", "no_such_function()", "NoSuchType", "Committer::no_such_member", "jobs.none",
                     "/no-such-route"):
            with self.subTest(name=name):
                self.expect("document-name", name, self.text + f"See `{name}`.\n")

    def test_a_longer_document_is_refused(self):
        self.expect("document-length", "at most", self.text + "word " * architecture.MAX_WORDS)

    def test_a_state_or_an_arrow_only_in_the_document_is_found(self):
        arrow = "  pending --> kept: mark_delivered\n"
        self.expect("state-diagram", "drawn", self.changed(arrow, arrow + "  pending --> lost: mark_delivered\n"))
        self.expect("state-diagram", "drawn", self.changed("| pending |", "| pending, lost |"))
        self.expect("state-diagram", "writes none", self.changed(arrow, "  pending --> kept: end_leases\n"))
        self.expect("state-diagram", "is missing", self.changed("### Partition\n", "### Part\n"))

    def test_a_state_or_a_writer_only_in_the_code_is_found(self):
        self.expect("state-diagram", "names the function", code=self.with_write("pause", "deliveries", "withdrawable"))
        self.expect("state-diagram", "names the function", code=self.with_write("forget", "outputs"))
        self.expect("state-diagram", "names the function", self.changed(": begin_delivery", ": mark_delivered"))
        self.expect("state-diagram", "changes deliveries.paused", code=self.with_write("mark_delivered", "deliveries", "paused"))
        code = copy.copy(self.code)
        code.tables = {**code.tables, "jobs": code.tables["jobs"].replace("'error')", "'error', 'paused')", 1)}
        self.expect("state-diagram", "may be", code=code)

    def test_the_root_readme_shows_the_same_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "docs").mkdir()
            (Path(folder) / "README.md").write_text("```\\n api\\n```\\n", encoding="utf-8")
            (Path(folder) / architecture.DOCUMENT).write_text(self.text, encoding="utf-8")
            self.assertIn("picture", [rule for _, rule, _ in architecture.check_architecture(Path(folder), [])])

    def test_statements_are_found_in_their_functions(self):
        source = """
Result<void> Jobs::pause(const std::string& id) {
  return write([&](Writer& writer) {
    writer.run(
        "UPDATE jobs SET state = :n, changed_at = :t"
        " WHERE id = :i", id);  // not DELETE FROM jobs
  });
}
void keep(Connection& connection) {
  connection.run("INSERT INTO meta (name) VALUES (:n) ON CONFLICT (name) DO UPDATE SET value = excluded.value");
}
"""
        self.assertEqual([(write.function, write.table, write.columns) for write in architecture.read_writes("x.cc", source)],
                         [("pause", "jobs", {"state", "changed_at"}), ("keep", "meta", set()), ("keep", "meta", {"value"})])


if __name__ == "__main__":
    unittest.main()
