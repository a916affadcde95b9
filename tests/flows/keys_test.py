"""Each Node type, key and choice of the schema stands in a bundle, and its tests fail without each optional one.

Removes each optional key from copies of the bundles in this folder and runs their tests: a test has to fail, unless the
reader refuses each of the copies. Keys that `flow test` can't show, such as retries, stand in a bundle of
tests/integration.
"""

import copy
import functools
import json
import pathlib
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as Xml

from schema_test import CTL, ROOT, read

HERE = ROOT / "tests" / "flows"
# Only a daemon has Connections, headers, attempts and their times. tests/integration/test_node_options.py tests these keys.
OF_DAEMON = ROOT / "tests" / "integration" / "node_options.flow.yaml"
KEYS_OF_DAEMON = {"aiAgent.connection", "aiAgent.retries", "aiAgent.timeout", "httpRequest.connection", "httpRequest.headers",
                  "httpRequest.retries", "httpRequest.timeout", "llmPrompt.connection", "llmPrompt.retries", "llmPrompt.timeout"}

NODE = json.loads(subprocess.run([CTL, "flow", "schema", "bundle"], capture_output=True, check=True, timeout=60).stdout)["$defs"]["node"]
TYPES = [way["required"][0] for way in NODE["oneOf"]]


def ways(schema):
    """The forms that a value may have."""
    return [way for part in schema["anyOf"] for way in ways({"description": schema.get("description"), **part})] if "anyOf" in schema else [schema]


def short_key(schema):
    """The key whose value may stand for the whole mapping: it has the same description as the other forms."""
    mapping = next((way for way in ways(schema) if "properties" in way), {})
    others = {way.get("description") for way in ways(schema) if way is not mapping} - {None}
    return next((key for key, inner in mapping.get("properties", {}).items() if inner.get("description") in others), None)


def keys(name, schema):
    """The keys below one of this name: (name, its schema, whether it is required)."""
    for way in ways(schema):
        if "items" in way and not short_key(schema):
            yield from keys(name, way["items"])
        for key, inner in way.get("properties", {}).items():
            yield f"{name}.{key}", inner, key in way.get("required", [])
            yield from keys(f"{name}.{key}", inner)


def uses_of_nodes(nodes, place):
    for number, node in enumerate(nodes or []):
        kind, = node.keys() & set(TYPES)
        yield kind, None, (*place, number)
        yield from uses(kind, NODE["properties"][kind], node[kind], (*place, number, kind))
        for beside in node.keys() - {kind, "id"}:
            yield f"{kind}.{beside}", node[beside], (*place, number, beside)
            yield from uses(f"{kind}.{beside}", NODE["properties"][beside], node[beside], (*place, number, beside))


def uses(name, schema, value, place):
    """The types and keys in a value: (name, its value, place). A place ends with None if the value stands for the mapping."""
    short = short_key(schema)
    for way in ways(schema):
        known = way.get("properties")
        if known and isinstance(value, dict) and value.keys() <= known.keys():
            for key, inner in value.items():
                yield f"{name}.{key}", inner, (*place, key)
                yield from uses(f"{name}.{key}", known[key], inner, (*place, key))
        elif known and short and not isinstance(value, dict):
            yield f"{name}.{short}", value, (*place, None)
            yield from uses(f"{name}.{short}", known[short], value, place)
        elif short:
            continue
        elif way.get("$ref") == "#/$defs/nodes":
            yield from uses_of_nodes(value, place)
        elif isinstance(value, list) and "items" in way:
            for number, item in enumerate(value):
                yield from uses(name, way["items"], item, (*place, number))
        elif isinstance(value, dict) and isinstance(way.get("additionalProperties"), dict):
            for key, inner in value.items():
                yield from uses(name, way["additionalProperties"], inner, (*place, key))


def uses_in(bundle):
    """The places of each type, key and choice in the bundle, such as `say`, `say.text` and `say.order: inTurn`. Outer places first."""
    found = {}
    for number, flow in enumerate(bundle["flows"]):
        for name, value, place in uses_of_nodes(flow["nodes"], ("flows", number, "nodes")):
            found.setdefault(name, []).append(place)
            if name in CHOICES:
                found.setdefault(f"{name}: {value}", []).append(place)
    return found


def without(bundle, places):
    """A copy of the bundle without these keys. A Node is replaced by one that does nothing of interest."""
    changed = copy.deepcopy(bundle)
    for *parents, last in reversed(places):
        of = functools.reduce(lambda value, part: value[part], parents[:-1], changed)
        if isinstance(last, int):
            kept = {key: value for key, value in of[parents[-1]][last].items() if key == "id"}
            of[parents[-1]][last] = {**kept, "addToContext": {"nothing": True}}
        elif last is None:
            of[parents[-1]] = {}
        else:
            del of[parents[-1]][last]
    return changed


ALL = {name: (schema, is_required) for kind in TYPES for name, schema, is_required in keys(kind, NODE["properties"][kind])}
CHOICES = {name: [choice for choice in schema["enum"] if choice != schema.get("default")] for name, (schema, _) in ALL.items() if "enum" in schema}


class Keys(unittest.TestCase):
    def run_tests(self, cases):
        """Runs tests on bundles, by name: (test file, bundle). Returns a word for each: refused, failed or passed."""
        with tempfile.TemporaryDirectory(prefix="conversed-test-") as folder:
            at = pathlib.Path(folder)
            files = {name: f"{number}.test.yaml" for number, name in enumerate(cases)}
            for name, (tests, bundle) in cases.items():
                (at / f"{files[name]}.bundle").write_text(json.dumps(bundle))
                (at / files[name]).write_text(json.dumps({**tests, "bundle": f"{files[name]}.bundle"}))
            subprocess.run([CTL, "flow", "test", *files.values(), "--junit", "results.xml"], cwd=at, capture_output=True)
            suites = {suite.get("name"): suite for suite in Xml.parse(at / "results.xml").iter("testsuite")}
        return {name: "refused" if suites[file].get("errors") != "0" else "failed" if suites[file].get("failures") != "0" else "passed"
                for name, file in files.items()}

    def test_a_test_fails_without_each_key(self):
        files = {path.name: read(path.read_text()) for path in sorted(HERE.glob("*.test.yaml"))}
        bundles = {file: read((HERE / tests["bundle"]).read_text()) for file, tests in files.items()}
        self.assertEqual(set(self.run_tests({file: (files[file], bundle) for file, bundle in bundles.items()}).values()), {"passed"})
        places = {}  # by name and test file
        for file, bundle in bundles.items():
            for name, found in uses_in(bundle).items():
                places.setdefault(name, {})[file] = found
        of_daemon = uses_in(read(OF_DAEMON.read_text()))
        self.assertLessEqual(KEYS_OF_DAEMON, ALL.keys())
        wanted = [*TYPES, *ALL, *(f"{name}: {choice}" for name, choices in CHOICES.items() for choice in choices)]
        missing = [name for name in wanted if name not in (of_daemon if name in KEYS_OF_DAEMON else places)]
        self.assertEqual(missing, [], "no bundle has these")
        # A bundle without a required key is refused.
        left = {name: list(places[name]) for name in wanted if name not in KEYS_OF_DAEMON and not (name in ALL and ALL[name][1])}
        self.assertGreater(len(left), 150)
        results = {name: set() for name in left}
        while left:
            taken = {name: files_of_name.pop() for name, files_of_name in left.items()}
            found = self.run_tests({name: (files[file], without(bundles[file], places[name][file])) for name, file in taken.items()})
            for name, result in found.items():
                results[name].add(result)
            left = {name: files_of_name for name, files_of_name in left.items() if files_of_name and found[name] != "failed"}
        unnoticed = [name for name, result in results.items() if "failed" not in result and result != {"refused"}]
        self.assertEqual(unnoticed, [], "all tests pass without these")


if __name__ == "__main__":
    unittest.main()
