"""conversectl refuses answers of foreign servers, and arguments that it can't send."""

import http.server
import itertools
import json
import os
import re
import subprocess
import tempfile
import threading
import unittest

from ctl_case import CTL, SOURCE, commands, help_of, section
from daemon_process import EMAIL, PASSWORD

NIGHTLY = os.environ.get("CONVERSED_NIGHTLY") == "1"


class StrangerCase(unittest.TestCase):
    """A server in place of a daemon. `answer_to` returns the status and the body of each answer."""

    @classmethod
    def setUpClass(cls):
        case = cls

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, answer = case.answer_to(self.path)
                payload = answer.encode(errors="surrogateescape")
                self.send_response(status)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            do_GET = do_POST = do_DELETE = answer

            def log_message(self, *_):
                pass

        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        cls.addClassCleanup(cls.server.server_close)
        cls.addClassCleanup(cls.server.shutdown)
        cls.url = f"http://127.0.0.1:{cls.server.server_address[1]}"
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()

    def run_ctl(self, *arguments, environment=None, **options):
        environment = environment or {"CONVERSECTL_AS": EMAIL, "CONVERSECTL_PASSWORD": PASSWORD, "CRM_TOKEN": "x", "HOOK_URL": "x"}
        return subprocess.run([CTL, "--url", self.url, *arguments], timeout=60, capture_output=True, text=True, env=environment,
                              **options)


class StrangeAnswers(StrangerCase):
    """A foreign server or another version of conversed answers. Each command prints a message and exits with 1."""

    ERROR = '{"detail": 5, "traceId": [], "details": {"problems": [5]}}'
    # Each command reads an answer that is JSON its own way.
    ANSWERS = [(200, '{"items": [{}], "flows": [{}], "project": 5, "_id": 7}'), (200, '{"items": [{"_id": "1", "name": "1"}]}'),
               (200, '{"items": 5}'), (200, '{"items": [null]}'), (200, "[]")]
    # All read these in one way. Each command gets one of them, nightly all.
    REFUSED = [(200, "<html>Not here</html>"), (200, "\udcff\udc9b"), (200, ""), (301, ERROR), (401, ERROR)]
    # Some commands need one of several options.
    ONE_OF = {("inject",): ["--text", "1"], ("why",): ["1"], ("timers", "reschedule"): ["--in", "1h"],
              ("schedules", "reschedule"): ["--in", "1h"], ("flow", "ramp"): ["--stop"],
              **{(group, verb): ["1"] for group, verb in (("deliveries", "retry"), ("deliveries", "drop"), ("deadletters", "replay"),
                                                          ("deadletters", "discard"))}}
    # These commands send no request.
    OF_FILES = {("completion",), ("flow", "check"), ("flow", "test"), ("restore",)}

    @classmethod
    def answer_to(cls, _):
        return cls.status, cls.answer

    @staticmethod
    def arguments(path):
        """Returns the command with a value for each required argument."""
        text = help_of(path)
        arguments = list(path) + StrangeAnswers.ONE_OF.get(path, [])
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
        folder = tempfile.TemporaryDirectory()  # `flow new` writes files
        self.addCleanup(folder.cleanup)
        for number, path in enumerate(sorted(set(commands()) - self.OF_FILES)):
            arguments = self.arguments(path)
            refused = self.REFUSED if NIGHTLY else [self.REFUSED[number % len(self.REFUSED)]]
            for type(self).status, type(self).answer in self.ANSWERS + refused:
                done = self.run_ctl(*arguments, input=PASSWORD + "\n", cwd=folder.name)
                with self.subTest(arguments=arguments, status=self.status, answer=self.answer):
                    self.assertIn(done.returncode, (0, 1), done)
                    if done.returncode == 1:
                        self.assertIn("conversectl: ", done.stderr)
                    if self.status != 200:
                        self.assertNotIn("one version", done.stderr)

    def test_another_server_is_told_as_such(self):
        type(self).status, type(self).answer = 501, "<html>Not implemented</html>"
        self.assertEqual(self.run_ctl("sessions", "list").stderr,
                         f"conversectl: the server at {self.url} did not answer like conversed (status 501): is --url right?\n")

    def test_an_argument_that_is_not_utf8_is_refused(self):
        done = subprocess.run([CTL, "--url", "http://127.0.0.1:9", "inject", "--endpoint", "a" * 64, "--user", b"\xff", "--session",
                               "1", "--text", "x"], capture_output=True, text=True, timeout=60,
                              env={"CONVERSECTL_AS": EMAIL, "CONVERSECTL_PASSWORD": PASSWORD})
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("not UTF-8", done.stderr)


class Answers(StrangerCase):
    """conversectl reads a daemon's answers page by page."""

    @classmethod
    def answer_to(cls, path):
        cls.asked.append(path)
        return cls.pages.pop(0)

    def run_with(self, pages, *arguments):
        type(self).asked, type(self).pages = [], [(status, json.dumps(page)) for status, page in pages]
        return self.run_ctl(*arguments)

    EXPORT = [(200, {"items": [], "next": "p2"}), (200, {"items": [{"n": 1}, {"n": "\u202e"}], "next": "p3"}),
              (200, {"items": [{"n": 3}], "next": None})]

    def test_an_export_begins_with_the_user_and_has_one_item_per_line(self):
        done = self.run_with(self.EXPORT, "users-data", "export", "ann")
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(done.stdout, '{"userId":"ann","items":[\n{"n":1},\n{"n":"\\u202e"},\n{"n":3}\n]}\n')
        path = "/management/usersdata?limit=100&userId=ann"
        self.assertEqual(self.asked, [path, f"{path}&after=p2", f"{path}&after=p3"])

    def test_an_export_writes_each_page_before_it_asks_for_the_next(self):
        done = self.run_with([*self.EXPORT[:2], (500, {"detail": "broken"})], "users-data", "export", "ann")
        self.assertEqual(done.returncode, 1, done)
        self.assertTrue(done.stdout.startswith('{"userId":"ann","items":[\n{"n":1},\n'), done)

    ROW = {"endpoint": None, "userId": "ann", "sessionId": "s", "state": "idle", "inboxSize": 0, "outputs": 1,
           "lastActivityAt": None, "waits": []}

    def test_a_list_is_read_on_behind_pages_in_which_nothing_fits(self):
        done = self.run_with([(200, {"items": [], "next": 7}), (200, {"items": [self.ROW], "next": None})], "sessions", "list", "--user", "ann")
        self.assertIn("ann\ts\tidle", done.stdout, done)
        path = "/management/sessions?userId=ann&limit=50"
        self.assertEqual(self.asked, [path, f"{path}&after=7"])
        done = self.run_with([(200, {"items": [], "next": 7}), (200, {"items": [], "next": None})], "deadletters", "list")
        self.assertEqual(done.stdout, "No dead letters.\n", done)
        self.assertEqual(self.asked[1], "/management/deadletters?state=new&limit=50&after=7")

    def test_a_row_without_a_field_is_refused_and_null_is_a_dash(self):
        done = self.run_with([(200, {"items": [self.ROW]})], "sessions", "list")
        self.assertEqual(done.stdout.splitlines()[1].split("\t"), ["-", "ann", "s", "idle", "0", "1", "-", "-"], done)
        for field in self.ROW:
            with self.subTest(field=field):
                item = {name: value for name, value in self.ROW.items() if name != field}
                done = self.run_with([(200, {"items": [item]})], "sessions", "list")
                self.assertEqual((done.returncode, done.stdout), (1, ""), done)
                self.assertIn(f"'{field}': are conversectl and the daemon of one version?", done.stderr)


class WrongUsage(StrangerCase):
    """conversectl exits with 2 after wrong usage, before it sends a request or asks for a password."""

    @classmethod
    def answer_to(cls, path):
        cls.asked.append(path)
        return 200, "{}"

    def expect_wrong(self, *arguments):
        type(self).asked = []
        done = self.run_ctl(*arguments, environment={"CONVERSECTL_AS": EMAIL}, stdin=subprocess.DEVNULL)
        with self.subTest(arguments=arguments):
            self.assertEqual((done.returncode, done.stdout, self.asked), (2, "", []), done)
        return done.stderr

    def test_a_number_must_have_plain_decimal_digits(self):
        for number in ("010", "0x3", "0b1", "+3", "3.0", "0", "-1", "", "abc"):
            self.expect_wrong("flow", "rollback", "Orders", number)
            self.expect_wrong("timers", "list", "--limit", number)
        self.assertIn("decimal digits, without a leading zero", self.expect_wrong("flow", "rollback", "Orders", "010"))
        self.expect_wrong("connections", "usages", "crm", "--after", "abc")

    def test_a_time_must_have_one_form(self):
        times = (("--at", "2027-03-28T14:30"), ("--in", "20m"), ("--cron", "0 9 * * *"))
        for first, second in itertools.combinations(times, 2):
            for command in (("timers", "reschedule", "1"), ("schedules", "reschedule", "1"),
                            ("inject", "--endpoint", "1", "--user", "1", "--session", "1", "--text", "x")):
                self.expect_wrong(*command, *first, *second)

    def test_a_misspelled_word_is_answered_with_the_one_that_is_meant(self):
        for arguments, meant in ((("sesions", "list"), "did you mean 'sessions'?"), (("sess", "list"), "did you mean 'sessions'?"),
                                 (("sessions", "lsit"), "did you mean 'list'?"), (("sessions", "list", "--limt", "3"), "'--limit'?"),
                                 (("--jsn", "sessions", "list"), "'--json'?"), (("sessions", "list", "--wach=3"), "'--watch'?"),
                                 (("sessions", "list", "--urll", "x"), "'--url'?")):
            self.assertIn(meant, self.expect_wrong(*arguments))
        self.assertIn("there is no command 'zzz'\nconversectl sessions --help shows", self.expect_wrong("sessions", "zzz"))
        self.assertIn("conversectl flow rollback --help", self.expect_wrong("flow", "rollback", "Orders"))
        self.assertIn("command is required", self.expect_wrong())

    SESSION = ("--endpoint", "a" * 64, "--user", "ann", "--session", "s1")
    SHOP = str(SOURCE / "config" / "demo" / "shop.yaml")

    def test_a_command_needs_its_subject(self):
        self.assertIn("name an ID, or a session", self.expect_wrong("why"))
        self.assertIn("not both", self.expect_wrong("why", "1", *self.SESSION))
        for command in (("deliveries", "retry"), ("deliveries", "drop"), ("deadletters", "replay"), ("deadletters", "discard")):
            self.assertIn("name one by its ID", self.expect_wrong(*command))
            self.assertIn("not both", self.expect_wrong(*command, "1", "--all"))
            self.assertIn("not both", self.expect_wrong(*command, "1", "--older-than", "2h"))
        for version in ((), ("3",)):
            self.assertIn("the VERSION and the SHARE", self.expect_wrong("flow", "ramp", "Orders", *version))
        self.assertIn("ID: the text is empty", self.expect_wrong("receipt", ""))

    def test_a_session_of_a_filter_is_named_by_three_options(self):
        for command in (("deadletters", "list"), ("deadletters", "discard"), ("deadletters", "replay", "--all"), ("deliveries", "list"),
                        ("deliveries", "retry", "--all"), ("deliveries", "drop")):
            self.assertIn("--user needs --endpoint and --session", self.expect_wrong(*command, "--user", "a"))
            self.assertIn("--session needs --endpoint and --user", self.expect_wrong(*command, "--session", "a"))
            self.assertIn("--user needs --session", self.expect_wrong(*command, "--user", "a", "--endpoint", "web"))
            self.assertIn("--user and --session need --endpoint", self.expect_wrong(*command, "--user", "a", "--session", "s"))
            for option in ("--older-than", "--newer-than"):
                self.assertIn(f"{option}: write a duration such as 20m", self.expect_wrong(*command, option, "foo"))

    def test_an_inject_needs_a_message_and_right_times(self):
        inject = ("inject", *self.SESSION)
        self.assertIn("--text", self.expect_wrong(*inject))
        inject += ("--text", "x")
        self.assertIn("--preview needs --at, --in or --cron", self.expect_wrong(*inject, "--preview"))
        for duration in ("foo", ""):
            self.assertIn("--in: write a duration such as 20m", self.expect_wrong(*inject, "--in", duration))
        for time in ((), ("--in", "1h")):
            self.assertIn("--timezone needs --at or --cron", self.expect_wrong(*inject, "--timezone", "Europe/Berlin", *time))
        for key in ("", "a\nb", "ä", "a" * 256):
            self.assertIn("--idempotency-key: give 1 to 255 printable", self.expect_wrong(*inject, "--idempotency-key", key))
        for group in ("schedules", "timers"):
            self.assertIn("name the time by --at, --in or --cron", self.expect_wrong(group, "reschedule", "1"))

    def test_options_that_exclude_each_other_are_refused(self):
        self.assertIn("--hold and --prune exclude each other", self.expect_wrong("import", self.SHOP, "--hold", "--prune"))
        self.assertIn("a FILE or --version, not both", self.expect_wrong("flow", "replay", "Orders", self.SHOP, "--version", "3"))

    def test_the_help_tells_the_exit_code_of_differences(self):
        self.assertIn("the exit code is 1 if", " ".join(help_of(("flow", "replay")).split()))

    def test_a_pause_must_be_a_number_of_seconds(self):
        for pause in ("0", "-1", "086", "100000", "x"):
            self.expect_wrong("sessions", "list", f"--watch={pause}")

    def test_a_session_needs_endpoint_user_and_name(self):
        names = (("--endpoint", "e"), ("--user", "u"), ("--session", "s"))
        for given in (*itertools.combinations(names, 1), *itertools.combinations(names, 2)):
            self.expect_wrong("timers", "list", *itertools.chain(*given))


if __name__ == "__main__":
    unittest.main()
