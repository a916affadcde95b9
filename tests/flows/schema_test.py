"""Every bundle and test file of the repository fits the JSON Schemas of `conversectl flow schema`; wrong ones fit neither
schema nor reader."""

import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CTL = pathlib.Path(os.environ["CONVERSED_TEST_BIN"]) / "conversectl"
sys.path += map(str, (ROOT / "build" / "tools" / "python" / "lib").glob("python3*/site-packages"))
try:
    import jsonschema
    import yaml
except ImportError:
    print("\n!! SKIPPED: jsonschema is missing; run `tests/tools/fetch python`\n", file=sys.stderr)
    sys.exit(77)


class Core(yaml.SafeLoader):
    """The core schema of YAML 1.2, as the reader has it: `yes` and dates are texts."""


Core.yaml_implicit_resolvers = {}
for tag, expression, first in (("null", "~|null||Null|NULL", "~nN"), ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
                               ("int", "[-+]?[0-9]+", "-+0123456789"),
                               ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+0123456789.")):
    Core.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{expression})$"), [*first, *([""] if tag == "null" else [])])


def read(text):
    return yaml.load(text, Core)  # noqa: S506


def schema(kind):
    done = subprocess.run([CTL, "flow", "schema", kind], capture_output=True, text=True, check=True, timeout=60)
    made = json.loads(done.stdout)
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


def examples(opening):
    """The YAML examples of the handbook that begin so."""
    for page in sorted((ROOT / "docs" / "flows").glob("*.md")):
        for block in re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
            if block.startswith(opening):
                yield f"{page.name}: {block[:40]!r}", block


BUNDLES = [(path.name, path.read_text()) for path in [*sorted((ROOT / "tests" / "flows").glob("*.flow.yaml")),
                                                       ROOT / "config" / "demo" / "shop.yaml"]]
TESTS = [(path.name, path.read_text()) for path in sorted((ROOT / "tests" / "flows").glob("*.test.yaml"))]
NODES = "conversed: 1\nproject: {name: P}\nflows:\n  - name: F\n    nodes:\n"


def mappings(value, path=()):
    """The places of all mappings, outermost first."""
    if isinstance(value, dict):
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from mappings(inner, (*path, key))


# Below these any key may stand.
FREE = {"data", "body", "context", "profile", "addToContext", "updateProfile", "headers", "cases", "parameters", "options", "result",
        "fields", "arguments", "inject", "followUp", "expect", "hits", "calls", "searches", "environment", "resumeIf",
        "any", "all", "splits", "with", "value", "values"}


class Schemas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bundles, cls.tests = schema("bundle"), schema("test")

    def expect_fit(self, validator, name, text):
        with self.subTest(name):
            self.assertEqual([f"{error.json_path}: {error.message}" for error in validator.iter_errors(read(text))], [])

    def test_every_bundle_fits(self):
        self.assertGreaterEqual(len(BUNDLES), 12)
        nodes = [(name, NODES + "".join(f"      {line}\n" for line in block.splitlines())) for name, block in examples("- ")]
        self.assertGreaterEqual(len(nodes), 34)
        for name, text in [*BUNDLES, *examples("conversed:"), *nodes]:
            self.expect_fit(self.bundles, name, text)

    def test_every_test_file_fits(self):
        self.assertGreaterEqual(len(TESTS), 12)
        for name, text in [*TESTS, *examples("bundle:")]:
            self.expect_fit(self.tests, name, text)

    def refused(self, bundle):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(bundle, file)
            file.flush()
            return subprocess.run([CTL, "flow", "check", file.name], capture_output=True, text=True, timeout=60).returncode == 1

    def test_an_unknown_key_at_any_place_is_refused_by_the_reader_and_by_the_schema(self):
        seen = set()
        for name, text in BUNDLES:
            bundle = read(text)
            for path in mappings(bundle):
                shape = tuple("[]" if isinstance(part, int) else part for part in path[-3:])
                if FREE.intersection(path) or shape in seen:
                    continue
                seen.add(shape)
                wrong = copy.deepcopy(bundle)
                at = wrong
                for part in path:
                    at = at[part]
                # Only the reader knows the project's locales.
                is_by_locale = at.keys() <= set(bundle["project"].get("locales", ["en"]))
                at["nosuchkey"] = "x"
                with self.subTest(name, path=path):
                    self.assertEqual(self.bundles.is_valid(wrong), is_by_locale)
                    self.assertTrue(self.refused(wrong))
        self.assertGreater(len(seen), 30)

    def test_conditions_that_are_no_texts_are_taken_by_both(self):
        for kind in ("any", "all"):
            node = {"waitForEvent": {kind: {"a": True, "b": 1}}}
            bundle = {"conversed": 1, "project": {"name": "P"}, "flows": [{"name": "F", "nodes": [node]}]}
            with self.subTest(node):
                self.assertTrue(self.bundles.is_valid(bundle))
                self.assertFalse(self.refused(bundle))

    def test_a_node_that_needs_no_key_is_taken_by_both(self):
        for node in ({"handover": None}, {"handover": {}}, {"return": None}, {"handover": "Hi"}):
            bundle = {"conversed": 1, "project": {"name": "P"}, "flows": [{"name": "F", "nodes": [node]}]}
            with self.subTest(node):
                self.assertTrue(self.bundles.is_valid(bundle))
                self.assertFalse(self.refused(bundle))

    def test_wrong_values_are_refused_by_both(self):
        for node in ({"question": {"text": "Hi", "maxAttempts": 0}}, {"question": {"text": "Hi", "maxAttempts": "3"}},
                     {"question": {"text": "Hi", "type": "txet"}}, {"question": {}}, {"sleep": "soon"}, {"sleep": 5}, {"say": 5}, {"handover": True}, {"question": None}, {"say": None}, {"waitForEvent": None},
                     {"say": "Hi", "then": []}, {"say": "Hi", "wait": True}, {}, {"id": "1a", "say": "Hi"}, {"stop": "now"},
                     {"goTo": {"node": "a", "wait": "yes"}}, {"interval": {"every": 0, "do": []}}, {"if": "true", "then": {}},
                     {"switch": {"on": "text", "cases": {"a": "b"}}}, {"forEach": "context.a", "do": [{"say": "x"}]},
                     {"forEach": "context.a", "item": "context.b", "do": {"say": "x"}}, {"split": [{"name": "a", "do": []}, {"name": "b", "share": 100}]},
                     {"split": [{"name": "a", "share": "50%"}, {"name": "b", "share": 50}]}):
            bundle = {"conversed": 1, "project": {"name": "P"}, "flows": [{"name": "F", "nodes": [{"id": "a", "wait": True}, node]}]}
            with self.subTest(node):
                self.assertFalse(self.bundles.is_valid(bundle))
                self.assertTrue(self.refused(bundle))


if __name__ == "__main__":
    unittest.main()
