"""Messages of `conversectl flow` about bad files, its reports for CI servers, and `conversectl webhook-secret`."""

import base64
import json
import pathlib
import shutil
import signal
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

    def test_a_test_that_fails_shows_its_dialogue_and_the_nodes_of_the_failing_step(self):
        (self.folder / "t.yaml").write_text(TESTS.replace("text: Hi", "text: Bye"))
        done = self.flow("test", self.folder / "t.yaml")
        self.assertEqual(done.returncode, 1, done)
        lines = [line.strip() for line in done.stdout.splitlines()[1:]]
        self.assertEqual(lines[:3], ["> x", "F: nodes[0] say: Hi", "< Hi"])
        self.assertRegex(lines[3], r"t\.yaml:2: text: \[0\]: expected \"Bye\", there is \"Hi\"$")

    def test_only_tests_of_a_name_are_run(self):
        done = self.flow("test", self.folder / "good.yaml", "--only", "Hi")
        self.assertEqual((done.returncode, done.stdout.count("ok    ")), (0, 1), done)
        done = self.flow("test", self.folder / "good.yaml", "--only", "Bye")
        self.assertEqual((done.returncode, done.stderr), (1, "conversectl: no test's name contains 'Bye'\n"), done)

    def test_coverage_joins_the_test_files_of_a_bundle(self):
        (self.folder / "b.yaml").write_text(BUNDLE.replace(
            "{say: Hi}", "{if: \"input.text == 'x'\", then: [{say: Hi}], else: [{say: Bye}]}"))
        (self.folder / "bye.yaml").write_text(TESTS.replace("user: x", "user: y").replace("text: Hi", "text: Bye"))
        good, bye = self.folder / "good.yaml", self.folder / "bye.yaml"
        lines = self.flow("test", good, "--coverage").stdout.splitlines()[1:]
        self.assertEqual(lines, [f"{self.folder}/b.yaml: F: 2 of 3 Nodes, 1 of 2 branches",
                                 "      nodes[0] if: else is never taken", "      nodes[0].else[0] say: Bye never runs"])
        lines = self.flow("test", good, bye, "--coverage").stdout.splitlines()[2:]
        self.assertEqual(lines, [f"{self.folder}/b.yaml: F: 3 of 3 Nodes, 2 of 2 branches"])
        report = json.loads(subprocess.run([f"{BIN}/conversectl", "--json", "flow", "test", good, "--coverage"], check=True,
                                           capture_output=True, timeout=60).stdout)
        self.assertEqual(report[0]["coverage"], [{"flow": "F", "nodes": 3, "nodesRun": 2, "branches": 2, "branchesTaken": 1,
                                                  "missed": ["nodes[0] if: else is never taken", "nodes[0].else[0] say: Bye never runs"]}])
        both = json.loads(subprocess.run([f"{BIN}/conversectl", "--json", "flow", "test", good, f"{self.folder}/./bye.yaml",
                                          "--coverage"], check=True, capture_output=True, timeout=60).stdout)
        self.assertEqual([(suite["bundle"], suite["coverage"][0]["nodesRun"]) for suite in both], [(f"{self.folder}/b.yaml", 3)] * 2)
        picture = self.folder / "covered.dot"
        self.assertEqual(self.flow("test", good, bye, "--coverage-picture", picture).returncode, 0)
        self.assertIn('label="F: 3 of 3 Nodes, 2 of 2 branches"', picture.read_text())
        done = self.flow("test", good, "--coverage-picture", "covered.png")
        self.assertIn("ends in .svg or .dot", done.stderr)

    def test_without_graphviz_a_picture_is_an_error_that_says_what_to_do(self):
        (self.folder / "b.yaml").write_text(BUNDLE.replace("[{say: Hi}]", f"[{', '.join(['{say: Hi}'] * 5000)}]"))
        done = subprocess.run([f"{BIN}/conversectl", "flow", "graph", self.folder / "b.yaml", "--format", "svg"], capture_output=True,
                              text=True, timeout=60, env={"PATH": str(self.folder)})
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("apt install graphviz", done.stderr)

    @unittest.skipUnless(shutil.which("dot"), "Graphviz is missing")
    def test_the_picture_of_the_coverage_is_drawn_by_graphviz(self):
        picture = self.folder / "covered.svg"
        done = self.flow("test", self.folder / "good.yaml", "--coverage-picture", picture)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("F: 1 of 1 Nodes, 0 of 0 branches", "".join(xml.parse(picture).getroot().itertext()))

    def test_watched_tests_run_again_and_show_what_fails(self):
        path = self.folder / "t.yaml"
        path.write_text(TESTS.replace("text: Hi", "text: Bye"))
        process = subprocess.Popen([f"{BIN}/conversectl", "flow", "test", path, "--watch", "1"], stdout=subprocess.PIPE, text=True)
        for cleanup in (process.stdout.close, process.wait, process.kill):
            self.addCleanup(cleanup)
        self.assertEqual(process.stdout.readline(), "1 of 1 tests fail\n")
        path.write_text(TESTS)
        while (line := process.stdout.readline()) != "0 of 1 tests fail\n":
            self.assertTrue(line, "the watch ended")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 0)

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
