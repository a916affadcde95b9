"""Messages of `conversectl flow` about bad files, its reports for CI servers, and `conversectl webhook-secret`."""

import base64
import json
import pathlib
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as xml

from case import BIN

BUNDLE = "conversed: 1\nproject: {name: P}\nflows: [{name: F, nodes: [{say: Hi}]}]\n"
TESTS = "bundle: b.yaml\ntests: [{name: says Hi, steps: [{user: x, expect: {text: Hi}}]}]\n"


class FlowTools(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "b.yaml").write_text(BUNDLE)
        (self.folder / "good.yaml").write_text(TESTS)

    def flow(self, *arguments):
        return subprocess.run([f"{BIN}/conversectl", "flow", *map(str, arguments)],
                              capture_output=True, text=True, timeout=60)

    def test_a_folder_in_place_of_a_file_is_an_error(self):
        for command in ["check", "graph", "test"]:
            done = self.flow(command, self.folder)
            self.assertEqual(done.returncode, 1, (command, done))
            self.assertIn(f"{self.folder}: is a folder", done.stdout + done.stderr)
        (self.folder / "t.yaml").write_text(TESTS.replace("b.yaml", "."))
        done = self.flow("test", self.folder / "t.yaml")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("the bundle . can't be read", done.stdout)

    def test_a_missing_file_is_an_error(self):
        for command in ["check", "graph", "test"]:
            done = self.flow(command, self.folder / "none.yaml")
            self.assertEqual(done.returncode, 1, (command, done))
            self.assertIn("none.yaml: can't be read", done.stdout + done.stderr)

    def test_the_junit_report_lists_every_file(self):
        report = self.folder / "junit.xml"
        done = self.flow("test", self.folder / "none.yaml", self.folder / "good.yaml", "--junit", report)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("says Hi", done.stdout)
        suites = xml.parse(report).getroot().findall("testsuite")
        self.assertEqual([(suite.get("tests"), suite.get("errors")) for suite in suites], [("1", "1"), ("1", "0")])

    def test_flow_check_accepts_generated_webhook_secrets_and_refuses_weak_ones(self):
        def make(*options):
            return subprocess.run([f"{BIN}/conversectl", *options, "webhook-secret"], capture_output=True, text=True,
                                  timeout=60, check=True).stdout.strip()

        secret = make()
        self.assertTrue(secret.startswith("whsec_"))
        self.assertEqual(len(base64.b64decode(secret[len("whsec_"):], validate=True)), 32)
        self.assertNotEqual(json.loads(make("--json"))["secret"], secret)
        bundle = self.folder / "hooked.yaml"
        endpoint = 'endpoints: [{name: web, flow: F, output: {webhook: {url: "https://x.example/", secret: "SECRET"}}}]\n'
        for given, code, words in ((secret, 0, "no findings"), ("open-sesame", 1, "begins with 'whsec_'"),
                                   ("whsec_b3BlbiBzZXNhbWU=", 1, "24 to 64 bytes, not 11"), ("${UNKNOWN_HERE}", 0, "no findings")):
            bundle.write_text(BUNDLE + endpoint.replace("SECRET", given))
            done = self.flow("check", bundle)
            self.assertEqual(done.returncode, code, done)
            self.assertIn(words, done.stdout)
            self.assertNotIn(given, done.stdout)

    def test_a_file_without_tests_is_an_error(self):
        (self.folder / "empty.yaml").write_text("bundle: b.yaml\ntests: []\n")
        done = self.flow("test", self.folder / "empty.yaml")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("empty.yaml:2:8: tests: there are no tests", done.stdout)


if __name__ == "__main__":
    unittest.main()
