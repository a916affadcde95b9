"""Completion of conversectl: the words that the program names, and the scripts of the shells."""

import http.server
import pathlib
import shutil
import subprocess
import threading
import unittest

from case import ECHO
from ctl_case import CTL, CtlCase, commands


class Completion(CtlCase):
    bundle = ECHO

    def words(self, *typed, **environment):
        done = subprocess.run([CTL, "__complete", *typed], capture_output=True, text=True, timeout=60,
                              env={**self.daemon.environment, "CONVERSECTL_URL": f"http://127.0.0.1:{self.daemon.ports['api']}",
                                   **environment})
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return [line.split("\t")[0] for line in done.stdout.splitlines()]

    def test_each_command_is_completed(self):
        top = self.words("")
        self.assertEqual(set(top), {path[0] for path in commands()})
        for path in commands():
            self.assertIn(path[-1], self.words(*path[:-1], path[-1][:1]))

    def test_options_of_the_command_and_of_the_program_are_completed(self):
        self.assertEqual(self.words("sessions", "list", "--lim"), ["--limit"])
        self.assertEqual(self.words("sessions", "list", "--wat"), ["--watch"])
        self.assertEqual(self.words("sessions", "list", "--js"), ["--json"])
        self.assertEqual(self.words("--co"), ["--color"])

    def test_values_are_completed(self):
        self.assertEqual(self.words("--color", "a"), ["auto", "always"])
        self.assertEqual(self.words("deadletters", "list", "--state", ""), ["new", "replayed", "discarded", "all"])
        self.assertEqual(self.words("completion", "z"), ["zsh"])
        self.assertEqual(self.words("import", ""), [":files"])
        self.assertEqual(self.words("flow", "check", "a.yaml", ""), [":files"])
        self.assertEqual(self.words("restore", "x", "--config", "/et"), [":files"])

    def test_names_of_objects_are_completed(self):
        self.assertEqual(self.words("sessions", "list", "--project", "Te"), ["Tests"])
        self.assertEqual(self.words("--json", "chat", "--project", "Tests", "e"), ["echo"])
        self.assertEqual(self.words("sessions", "show", "--endpoint", "ec"), ["echo"])
        self.assertEqual(self.words("flow", "versions", ""), ["Echo"])
        self.assertEqual(self.words("flow", "rollback", "Echo", ""), [])

    def test_without_a_daemon_or_a_password_there_are_no_names(self):
        self.assertEqual(self.words("flow", "versions", "", CONVERSECTL_URL="http://127.0.0.1:9"), [])
        self.assertEqual(self.words("flow", "versions", "", CONVERSECTL_AS=""), [])

    def test_an_answer_that_is_not_the_daemons_ends_the_completion(self):
        class Other(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'{"items": [{}]}')

            def log_message(self, *_):
                pass

        other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
        self.addCleanup(other.server_close)
        self.addCleanup(other.shutdown)
        threading.Thread(target=other.serve_forever, daemon=True).start()
        done = subprocess.run([CTL, "__complete", "flow", "versions", ""], capture_output=True, text=True, timeout=60,
                              env={**self.daemon.environment, "CONVERSECTL_URL": f"http://127.0.0.1:{other.server_port}"})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", ""))

    def bash(self, *words):
        """What bash completes with the script that the program prints."""
        script = ('. <("$1" completion bash); shift; COMP_WORDS=(conversectl "$@"); COMP_CWORD=$#; _conversectl; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-uc", script, "bash", CTL, *words], capture_output=True, text=True, timeout=60,
                              env={**self.daemon.environment, "PATH": f"{CTL.parent}:/usr/bin:/bin",
                                   "CONVERSECTL_URL": f"http://127.0.0.1:{self.daemon.ports['api']}"})
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return [line for line in done.stdout.splitlines() if line]

    def test_bash_completes_commands_options_names_and_files(self):
        self.assertEqual(self.bash("sess"), ["sessions"])
        self.assertEqual(self.bash("apikey", "create", "--na"), ["--name"])
        self.assertEqual(self.bash("flow", "versions", "E"), ["Echo"])
        file = pathlib.Path(self.folder.name) / "bundle.yaml"
        self.assertEqual(self.bash("import", str(file)[:-3]), [str(file)])

    def test_bash_quotes_names_with_blanks(self):
        path = pathlib.Path(self.folder.name) / "blank.yaml"
        path.write_text(ECHO.replace("Tests", "My shop; $(id)"))
        self.daemon.ctl("import", str(path))
        self.assertEqual(self.bash("export", "My"), [r"My\ shop\;\ \$\(id\)"])

    def test_the_scripts_are_what_their_shells_can_read(self):
        for shell in ("bash", "zsh", "fish"):
            program = shutil.which(shell)
            if program is None:
                continue  # Debian has it as a package
            script = subprocess.run([CTL, "completion", shell], capture_output=True, text=True, check=True, timeout=60).stdout
            checked = subprocess.run([program, "-n", "/dev/stdin"], input=script, capture_output=True, text=True, timeout=60)
            self.assertEqual((checked.returncode, checked.stderr), (0, ""), shell)


if __name__ == "__main__":
    unittest.main()
