"""Runs the command lines of documents and help texts. Looks up commands of `./dev` in its help instead."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import unittest

from case import BIN
from ctl_case import SHOP, SOURCE, CtlCase, commands, help_of
from daemon_process import EMAIL, PASSWORD

DOCUMENTS = [path for pattern in ("README.md", "CONTRIBUTING.md", "*/README.md", "*/*/README.md", "docs/*.md",
                                  "docs/flows/*.md", "config/conversed.yaml")
             for path in sorted(SOURCE.glob(pattern))]
MANUALS = sorted(SOURCE.glob("systemd/*.[18].in"))
PROGRAM = re.compile(r"(?:^|[|&;]\s*)(conversectl|conversed|curl|\./dev)(?=\s|$)")
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```\n", re.MULTILINE | re.DOTALL)
# Tests have no service manager, so they run the command behind systemd-run.
SYSTEMD = re.compile(r"systemd-run .* (?=conversed [a-z])")
BEGINS_DAEMON = "conversed &"


def logical_lines(block):
    """Returns the lines of a shell script without comments. Joins continued lines."""
    lines = (re.sub(r"(^|\s+)#.*", "", line).strip() for line in re.sub(r"\\\n\s*", " ", block).splitlines())
    return [SYSTEMD.sub("", line) for line in lines if line]


def blocks(path):
    """Returns the scripts of a document or a manual page, each as a list of lines."""
    text = path.read_text()
    scripts = [block for language, block in FENCE.findall(text) if language in ("", "sh")]
    scripts += [block.replace("\\-", "-") for block in re.findall(r"^\.EX\n(.*?)^\.EE", text, re.MULTILINE | re.DOTALL)]
    return [logical_lines(script) for script in scripts]


def spans(text):
    """Returns the texts between back quotes outside of scripts."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", FENCE.sub("", text))]


class CommandLines(CtlCase):
    bundle = SHOP
    settings = 'proactive: {provisioning: {url: "UPSTREAM/tenants", token: "a-token-of-32-bytes-or-more-for-tests"}}\n'

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.work = pathlib.Path(cls.folder.name) / "work"
        cls.work.mkdir()
        for name in ("config", "tests"):
            (cls.work / name).symlink_to(SOURCE / name)
        # curl fails for a status of 400 and above.
        (cls.work / ".curlrc").write_text("fail\n")
        # A script must export the variables of the demo's bundle itself.
        cls.bundle_values = {name: cls.daemon.environment.pop(name) for name in ("CRM_TOKEN", "HOOK_URL", "HOOK_SECRET")}
        cls.environment_of_shell = {
            **cls.daemon.environment, "PATH": f"{BIN}:{os.environ['PATH']}", "CURL_HOME": str(cls.work),
            "URL": f"http://127.0.0.1:{cls.daemon.ports['api']}", "TOKEN": cls.tokens["web"], "KEY": cls.key,
            "PASSWORD": PASSWORD, "XDG_CONFIG_HOME": str(cls.work), "CONVERSECTL_URL": f"http://127.0.0.1:{cls.daemon.ports['api']}"}
        status, job, _ = cls.daemon.request(
            "POST", f"/v2.0/projects/{cls.report['project']['_id']}/settings/proactive/setup", None, {"X-API-Key": cls.key})
        assert status == 201, job
        cls.job = job["_id"]

    def setUp(self):
        super().setUp()
        self.environment_of_shell = dict(type(self).environment_of_shell)

    def take_exports(self, line):
        if line.startswith("export "):
            names = re.findall(r"(\w+)=", line)
            self.environment_of_shell.update({name: self.bundle_values[name] for name in names if name in self.bundle_values})

    folders = 0

    def new_folder(self):
        """Makes a data folder. Returns its settings file, and an environment whose defaults name the same folder."""
        type(self).folders += 1
        folder = self.work / str(self.folders)
        folder.mkdir(mode=0o700)
        settings = self.work / f"{self.folders}.yaml"
        settings.write_text(f"data_dir: {folder}\n")
        return settings, {**self.environment_of_shell, "STATE_DIRECTORY": str(folder), "CONVERSED_LISTEN_PORT": "0",
                          "CONVERSED_ADMIN_PORT": "0"}

    def shell(self, line, environment):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", line], capture_output=True, text=True, cwd=self.work,
                              env=environment, timeout=120, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, (line, done))
        return done.stdout

    def id_for(self, line):
        """Returns the id of an object that the command of the line knows."""
        if " jobs " in line:
            return self.job
        session = f"session {self.folders}"
        status, _, headers = self.inject("loop", session, text="x")
        self.assertEqual(status, 200)
        letter = self.letter_of(session)
        return headers["X-Inject-Id"] if " receipt " in line else letter

    def version_for(self, line):
        """Returns a held version of the Flow Orders. It is in a ramp, unless the line begins one."""
        self.daemon.ctl("flow", "ramp", "Orders", "--stop", check=False)
        text = SHOP.replace("  - name: Orders\n    nodes:\n", f"  - name: Orders\n    nodes:\n      - log: version {self.folders}\n")
        report = self.daemon.manage("POST", "import", {"text": text, "environment": self.bundle_values, "hold": True})
        version, = [flow["version"] for flow in report["flows"] if flow["name"] == "Orders"]
        if "10%" not in line:
            self.daemon.ctl("flow", "ramp", "Orders", str(version), "10%")
        return version

    def run_line(self, line):
        """Replaces the placeholders of a line and runs it."""
        settings, environment = self.new_folder()
        words = {"FILE": settings, "/etc/conversed/conversed.yaml": settings, "USERID": "bob", "NAME": f"backup-{self.folders}",
                 "BUNDLE": "tests/flows/faq.flow.yaml"}
        if "new-epoch" in line:
            self.shell(f'echo "$PASSWORD" | conversed init --config {settings} --organisation O --admin {EMAIL} '
                       "--password-stdin", environment)
        if "BACKUP" in line:
            words["BACKUP"] = self.daemon.ctl("backup", "--name", f"restored-{self.folders}")["path"]
            words["master.key"] = self.daemon.folder / "data" / "master.key"
        if " ID" in line and "--project ID" not in line:
            words["ID"] = self.id_for(line)
        if " flow ramp " in line:
            words["5"] = self.version_for(line)
        if "conversectl login" in line:
            words["URL"] = environment["CONVERSECTL_URL"]
        if "conversectl logout" in line:
            self.shell("conversectl login", environment)
        words["--project ID"] = "--project " + self.report["project"]["_id"]
        for word, value in words.items():
            line = re.sub(rf"(?<![\w/.-]){re.escape(word)}(?![\w/.])", str(value), line)
        return self.shell(line, environment)

    def check_dev(self, line):
        """Checks that `./dev help` lists the command with its options. Running it would build and install packages."""
        text = subprocess.run([SOURCE / "dev", "help"], capture_output=True, text=True, check=True, timeout=60).stdout
        command, *arguments = line.split()[1:]
        match = re.search(rf"^  {command} (.*\n(?: {{5,}}.*\n)*)", text, re.MULTILINE)
        self.assertTrue(match, line)
        for argument in arguments:
            self.assertIn(argument.strip("[].").split(".")[0], match[1], line)

    def is_mention(self, line):
        """Returns whether the line only names a program or a group of commands and can't be run."""
        program, *words = line.split()
        if not words:
            return True
        if program != "conversectl" or tuple(words) in commands() and "REQUIRED" not in help_of(tuple(words)):
            return False
        return any(path[:len(words)] == tuple(words) for path in commands())

    tried = set()

    def try_line(self, line):
        """Tries each line once, even if several documents have it."""
        if line in self.tried:
            return None
        self.tried.add(line)
        if line.startswith("./dev"):
            return self.check_dev(line)
        return self.run_line(line.replace("[", "").replace("]", ""))

    # --- Tests ---------------------------------------------------------------------------------

    def test_scripts_in_documents_run(self):
        count = 0
        for document in DOCUMENTS + MANUALS:
            for lines in blocks(document):
                if BEGINS_DAEMON in lines:
                    continue  # test_the_script_that_starts_a_daemon_runs_in_an_empty_folder runs these lines
                for line in lines:
                    self.take_exports(line)
                    if not PROGRAM.search(line):
                        continue
                    with self.subTest(document=document.relative_to(SOURCE), line=line):
                        self.try_line(line)
                        count += 1
        self.assertGreater(count, 15)

    def test_command_lines_in_texts_run(self):
        texts = {path.relative_to(SOURCE): path.read_text() for path in DOCUMENTS}
        texts |= {" ".join(path) + " --help": help_of(path) for path in commands()}
        texts["conversectl --help"] = help_of(())
        texts["conversed --help"] = subprocess.run([f"{BIN}/conversed", "--help"], capture_output=True, text=True, check=True,
                                                   timeout=60).stdout
        lines = {line: name for name, text in texts.items() for line in spans(text) if PROGRAM.match(line)}
        self.assertGreater(len(lines), 20)
        for line, name in lines.items():
            with self.subTest(name=name, line=line):
                if not self.is_mention(line) and line not in ("conversed init",):
                    self.try_line(line)

    def test_each_help_has_an_example(self):
        for path in commands():
            with self.subTest(path=path):
                text = help_of(path)
                example = re.search(r"^Example: conversectl " + " ".join(path) + r"( .*)?$", text, re.MULTILINE)
                self.assertTrue(example, text)
                positionals = [line for line in text.splitlines() if "REQUIRED" in line and line.startswith("  ")]
                self.assertFalse(positionals and not example[1], text)
                for option in re.findall(r"--[a-z-]+", example[1] or ""):
                    self.assertRegex(text, rf"(?m)^ *(-\w,)?{option}\b")

    def test_each_command_that_shows_something_can_be_watched(self):
        shows = {"list", "show", "groups", "health", "usages", "versions", "diff", "receipt", "why", "status", "audit"}
        for path in commands():
            if path[-1] in shows:
                self.assertIn("--watch", help_of(path), path)

    def test_usage_lines_begin_as_a_command_line_does(self):
        for path in commands():
            self.assertIn("\nUsage: " + " ".join(("conversectl", *path)), help_of(path))

    def test_the_script_that_starts_a_daemon_runs_in_an_empty_folder(self):
        lines = next(lines for document in DOCUMENTS for lines in blocks(document) if BEGINS_DAEMON in lines)
        at = lines.index(BEGINS_DAEMON)
        for line in lines:
            self.take_exports(line)
        _, environment = self.new_folder()
        folder = pathlib.Path(environment["STATE_DIRECTORY"])
        for line in lines[:at]:
            self.shell(line, environment)
        daemon = subprocess.Popen([f"{BIN}/conversed"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        ports = folder / "run" / "ports.json"
        for _ in range(1200):
            if ports.exists():
                break
            with self.assertRaises(subprocess.TimeoutExpired, msg="the daemon ended"):
                daemon.wait(0.05)
        environment["CONVERSECTL_URL"] = f"http://127.0.0.1:{json.loads(ports.read_text())['api']}"
        ran = [self.shell(line, environment) for line in lines[at + 1:] if not line.startswith("export ")]
        self.assertIn("Imported Shop", ran[0])

    def test_commands_that_the_demo_prints_run(self):
        spec = importlib.util.spec_from_file_location("demo", SOURCE / "config" / "demo" / "demo.py")
        demo = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(demo)
        text = demo.CURLS.format(port=self.daemon.ports["api"], token=self.tokens["web"], key=self.key, folder=self.folder.name,
                                 email=EMAIL, password=PASSWORD, bin=BIN)
        script = "\n".join(line for line in re.sub(r"\\\n\s*", " ", text).splitlines() if line.startswith("  "))
        self.assertEqual(script.count("curl "), 3)
        printed = self.shell(script, self.environment_of_shell)
        self.assertIn("Message was sent to AI for Flow processing", printed)

    def test_help_of_dev_names_only_existing_commands(self):
        text = subprocess.run([SOURCE / "dev", "help"], capture_output=True, text=True, check=True, timeout=60).stdout
        named = re.findall(r"\./dev [a-z]+(?: unit)?", text)
        self.assertGreater(len(named), 3)
        for line in named:
            self.check_dev(line)


if __name__ == "__main__":
    unittest.main()
