"""What conversectl does with answers that are none of conversed's, and with arguments that can't be sent."""

import http.server
import re
import subprocess
import threading
import unittest

from ctl_case import CTL, SOURCE, commands, help_of, section
from daemon_process import EMAIL, PASSWORD


class StrangeAnswers(unittest.TestCase):
    """What answers on --url is no conversed, or one of another version: a message and exit code 1, whatever the command."""

    ANSWERS = ['{"items": [{}], "flows": [{}], "project": 5, "_id": 7}', '{"items": [{"_id": "1", "name": "1"}]}', '{"items": 5}',
               '{"items": [null]}', '[]', '<html>Not here</html>', "\udcff\udc9b", ""]
    ERROR = '{"detail": 5, "traceId": [], "details": {"problems": [5]}}'
    # They ask no daemon.
    OF_FILES = {("flow", "check"), ("flow", "test"), ("restore",)}

    @classmethod
    def setUpClass(cls):
        case = cls

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                payload = case.answer.encode(errors="surrogateescape")
                self.send_response(case.status)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            do_GET = do_POST = do_DELETE = answer

            def log_message(self, *_):
                pass

        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        cls.addClassCleanup(cls.server.server_close)
        cls.addClassCleanup(cls.server.shutdown)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()

    @staticmethod
    def arguments(path):
        """The command with a value for each argument that it requires."""
        text = help_of(path)
        arguments = list(path)
        for line in section(text, "Positionals") + section(text, "Options"):
            match = re.match(r"  (\S+) (?:.* )?REQUIRED", line)
            if not match:
                continue
            if match[1].startswith("--"):
                arguments.append(match[1])
            is_file = match[1] in ("BUNDLE", "FILE")
            arguments.append(str(SOURCE / "config" / "demo" / "shop.yaml") if is_file else "1")
        return arguments + (["--password-stdin"] if "--password-stdin" in text else [])

    def test_no_command_aborts(self):
        for path in set(commands()) - self.OF_FILES:
            arguments = self.arguments(path)
            for type(self).status, type(self).answer in [(200, answer) for answer in self.ANSWERS] + \
                    [(status, self.ERROR) for status in (301, 401)]:
                done = subprocess.run(
                    [CTL, "--url", f"http://127.0.0.1:{self.server.server_address[1]}", *arguments], timeout=60,
                    capture_output=True, text=True, input=PASSWORD + "\n",
                    env={"CONVERSECTL_AS": EMAIL, "CONVERSECTL_PASSWORD": PASSWORD, "CRM_TOKEN": "x", "HOOK_URL": "x"})
                with self.subTest(arguments=arguments, status=self.status, answer=self.answer):
                    self.assertIn(done.returncode, (0, 1), done)
                    if done.returncode == 1:
                        self.assertIn("conversectl: ", done.stderr)
                    if self.status != 200:
                        self.assertNotIn("one version", done.stderr)

    def test_arguments_that_are_not_utf8(self):
        done = subprocess.run([CTL, "--url", "http://127.0.0.1:9", "inject", "--endpoint", "1", "--user", b"\xff", "--session",
                               "1", "--text", "x"], capture_output=True, text=True, timeout=60,
                              env={"CONVERSECTL_AS": EMAIL, "CONVERSECTL_PASSWORD": PASSWORD})
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("not UTF-8", done.stderr)


if __name__ == "__main__":
    unittest.main()
