"""Shared by the tests of conversectl: reads its commands from `--help`, and checks its output for people and for programs."""

import functools
import json
import pathlib
import re
import subprocess
import unicodedata

from case import BIN, DaemonCase

CTL = pathlib.Path(BIN).resolve() / "conversectl"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
ID = r"[0-9a-z]{24}"
RIGHT_TO_LEFT = "\u202e"
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent


# The demo's project and two more Flows: one fails, the other one waits.
SHOP = (SOURCE / "config" / "demo" / "shop.yaml").read_text().replace(
    "\nendpoints:\n", f"""
  - {{name: "Loop {RIGHT_TO_LEFT}", nodes: [{{id: again, addToContext: {{said: "{{{{input.text}}}}"}}}}, {{goTo: again}}]}}
  - {{name: Sleeper, nodes: [{{say: "Good night."}}, {{sleep: {{for: 1d}}}}]}}
endpoints:
  - {{name: loop, flow: "Loop {RIGHT_TO_LEFT}"}}
  - {{name: sleeper, flow: Sleeper}}
""", 1)


@functools.cache
def help_of(path):
    return subprocess.run([CTL, *path, "--help"], capture_output=True, text=True, check=True, env={}, timeout=60).stdout


def section(text, name):
    """Returns the lines of one section of a help text."""
    match = re.search(rf"^{name}:\n((?:(?:  .*)?\n)*)", text, re.MULTILINE)
    return match[1].splitlines() if match else []


def commands(path=()):
    """Reads the help texts. Returns the path of each command without subcommands. Groups have no groups."""
    if len(path) == 2:
        return [path]
    names = [line.split()[0] for line in section(help_of(path), "Subcommands") if re.match(r"  \S", line)]
    return [leaf for name in names for leaf in commands((*path, name))] or [path]


def test_name(path):
    """Returns the name of the command's test."""
    return "test_" + "_".join(path).replace("-", "_")


def acting_characters(text):
    """Returns the characters that act on a terminal: controls except line ends and tabs, and changes of the direction of writing."""
    return {hex(ord(c)) for c in text if c not in "\n\t" and (unicodedata.category(c) == "Cc" or unicodedata.bidirectional(c) in (
        "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI") or c in "\u2028\u2029")}


def rows(text):
    """Returns the rows of a printed table as dicts: header to cell."""
    headers, *cells = (line.split("\t") for line in text.splitlines())
    return [dict(zip(headers, row)) for row in cells if len(row) == len(headers)]


def sheet(text):
    """Returns the members of a printed object as a dict: path to value."""
    return dict(line.split("\t", 1) for line in text.splitlines())


class CtlCase(DaemonCase):
    """The test of `sessions list` is `test_sessions_list`. The test must run the command both for people and with --json."""

    def setUp(self):
        self.ran = set()

    def run_ctl(self, *arguments, input=None, code=0):
        while True:  # repeats the command while the daemon is too busy for it
            done = subprocess.run([CTL, "--url", f"http://127.0.0.1:{self.daemon.ports['api']}", *map(str, arguments)],
                                  capture_output=True, text=True, input=input, timeout=120, env=self.daemon.environment)
            if "try again in a moment" not in done.stderr:
                break
            self.assertFalse(self.daemon.wait_end(0.05), "the daemon ended")
        self.assertEqual(done.returncode, code, (arguments, done))
        self.assertEqual(acting_characters(done.stdout + done.stderr), set(), arguments)
        return done

    def people(self, *arguments, **options):
        """Runs a command without --json. Returns its standard output."""
        done = self.run_ctl(*arguments, **options)
        self.ran.add(("people", *arguments))
        return done.stdout

    def json(self, *arguments, **options):
        done = self.run_ctl("--json", *arguments, **options)
        self.ran.add(("json", *arguments))
        return json.loads(done.stdout)

    def row(self, text, **cells):
        """Returns the only row of a printed table with these cells. `_` in a name stands for a blank."""
        wanted = {name.replace("_", " "): value for name, value in cells.items()}
        found = [row for row in rows(text) if wanted.items() <= row.items()]
        self.assertEqual(len(found), 1, text)
        return found[0]

    def dead_letter(self, name, **message):
        """Makes a dead letter in this session. Returns its id."""
        self.assertEqual(self.inject("loop", name, **message)[0], 200)
        return self.letter_of(name)

    def letter_of(self, name):
        for _ in range(600):
            for letter in self.daemon.manage("GET", "deadletters?state=new&limit=100")["items"]:
                if letter["sessionId"] == name:
                    return letter["_id"]
            self.assertFalse(self.daemon.wait_end(0.05), "the daemon ended")
        self.fail(f"no dead letter of {name}")

    def tearDown(self):
        for path in commands():
            if self.id().endswith("." + test_name(path)):
                self.expect_both_ways(path)

    def expect_both_ways(self, path):
        for way in ("people", "json"):
            self.assertTrue(any(ran[0] == way and ran[1:len(path) + 1] == path for ran in self.ran),
                            f"the test does not run {path} for: {way}")
