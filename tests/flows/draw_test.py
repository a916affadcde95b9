"""`conversectl flow graph` draws bundles as SVG by Graphviz, with a box for each Node and an arrow for each edge."""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest
import xml.etree.ElementTree as xml

HERE = pathlib.Path(__file__).resolve().parent
CTL = pathlib.Path(os.environ["CONVERSED_TEST_BIN"]) / "conversectl"
SVG = "{http://www.w3.org/2000/svg}"

if shutil.which("dot") is None:
    print("\n!! SKIPPED: dot is missing; install Debian's graphviz\n", file=sys.stderr)
    sys.exit(77)


def graph(bundle, *arguments):
    return subprocess.run([CTL, "flow", "graph", bundle, *arguments], capture_output=True, text=True, timeout=60)


class Draw(unittest.TestCase):
    def test_every_bundle_can_be_drawn(self):
        bundles = sorted(HERE.glob("*.flow.yaml"))
        self.assertGreaterEqual(len(bundles), 12)
        for bundle in bundles:
            with self.subTest(bundle=bundle.name):
                dot = graph(bundle, "--format", "dot")
                self.assertEqual(dot.returncode, 0, dot.stderr)
                svg = graph(bundle, "--format", "svg")
                self.assertEqual(svg.returncode, 0, svg.stderr)
                root = xml.fromstring(svg.stdout)
                kinds = [group.get("class") for group in root.iter(f"{SVG}g")]
                self.assertEqual(kinds.count("edge"), dot.stdout.count(" -> "))
                self.assertGreater(kinds.count("node"), 2)

    def test_texts_of_nodes_are_in_the_picture(self):
        svg = graph(HERE / "agent.flow.yaml", "--format", "svg")
        shown = "".join(xml.fromstring(svg.stdout).itertext())
        for text in ("aiAgent", "tools[0].do", "httpRequest", "onError"):
            self.assertIn(text, shown)


if __name__ == "__main__":
    unittest.main()
