"""conversectl on a terminal: tables that fit the window, ages, local times and colors."""

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import time
import unittest

from ctl_case import CTL
from daemon_process import EMAIL, PASSWORD
from test_ctl_answers import StrangerCase

LONG = "a reason that is longer than the window is wide, so that it can't be shown as a whole on one line"
KEY = "6f9619ff8b86d011b42d00c0"


class TerminalCase(StrangerCase):
    """Commands whose standard output is a terminal; `answer` is the daemon's."""

    answer = {}

    @classmethod
    def answer_to(cls, _):
        return 200, json.dumps(cls.answer)

    def begin(self, *arguments, columns=80, lines=24, **environment):
        """The process, and the file descriptor that gets what it prints."""
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        process = subprocess.Popen(
            [CTL, "--url", self.url, *arguments], stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.PIPE, text=True,
            env={"CONVERSECTL_AS": EMAIL, "CONVERSECTL_PASSWORD": PASSWORD, "TERM": "xterm", "TZ": "CET-1CEST,M3.5.0,M10.5.0/3",
                 **environment})
        os.close(slave)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, master

    @staticmethod
    def rest(master):
        """What the terminal gets until the process ends."""
        text = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # all of its writers are gone
                part = b""
            if not part:
                return text.decode().replace("\r\n", "\n")
            text += part

    def shown(self, *arguments, **options):
        process, master = self.begin(*arguments, **options)
        text = self.rest(master)
        self.assertEqual((process.wait(60), process.stderr.read()), (0, ""))
        return text


class Terminal(TerminalCase):
    KEYS = {"items": [{"_id": KEY, "user": EMAIL, "createdAt": 0, "name": LONG}]}

    def test_the_last_texts_of_a_table_are_shortened_to_the_window(self):
        type(self).answer = self.KEYS
        header, row = self.shown("apikey", "list", NO_COLOR="1").splitlines()
        self.assertEqual(len(row), 80)
        self.assertTrue(row.startswith(f"{KEY}  {EMAIL}  ") and row.endswith("…"), row)
        self.assertEqual(row.index(EMAIL), header.index("USER"))
        self.assertIn(LONG, self.shown("apikey", "list", columns=300))

    def test_a_list_has_ages_and_a_show_has_local_times_with_their_zone(self):
        type(self).answer = {"items": [{**self.KEYS["items"][0], "createdAt": int(time.time()) - 200}]}
        self.assertIn("  3 min ago  ", self.shown("apikey", "list", NO_COLOR="1"))
        type(self).answer = {"_id": KEY, "createdAt": 1795356239}
        self.assertIn("\nCreated  2026-11-22 15:03:59 CET (", self.shown("schedules", "show", KEY, NO_COLOR="1"))

    def test_colors_are_for_terminals_unless_they_are_chosen(self):
        type(self).answer = self.KEYS
        bold = "\x1b[1mID\x1b[0m"
        self.assertIn(bold, self.shown("apikey", "list"))
        self.assertNotIn("\x1b", self.shown("apikey", "list", NO_COLOR="1"))
        self.assertNotIn("\x1b", self.shown("apikey", "list", TERM="dumb"))
        self.assertNotIn("\x1b", self.shown("--color", "never", "apikey", "list"))
        self.assertIn(bold, self.shown("--color", "always", "apikey", "list", NO_COLOR="1"))
        self.assertNotIn("\x1b", self.run_ctl("apikey", "list").stdout)


class Watch(TerminalCase):
    @staticmethod
    def until(master, wanted):
        """What the terminal gets until the text has come."""
        text = ""
        while wanted not in text:
            text += os.read(master, 65536).decode()
        return text

    def of_name(self, name):
        type(self).answer = {"items": [{"_id": KEY, "user": EMAIL, "createdAt": None, "name": name}]}

    def end(self, process):
        process.send_signal(signal.SIGINT)
        self.assertEqual((process.wait(60), process.stderr.read()), (0, ""))

    def test_a_list_is_drawn_again_in_its_place_until_sigint(self):
        self.of_name("before")
        process, master = self.begin("apikey", "list", "--watch", "1")
        first = self.until(master, "before")
        self.assertIn("\x1b[2J", first)
        self.of_name("after")
        text = self.until(master, "after")
        self.assertIn("\x1b[H", text)
        self.assertNotIn("\x1b[2J", text, "the screen flickers")
        self.end(process)

    def test_no_more_lines_are_drawn_than_the_terminal_has(self):
        type(self).answer = {"items": [{"_id": KEY, "user": EMAIL, "createdAt": None, "name": f"key {n}"} for n in range(20)]}
        process, master = self.begin("apikey", "list", "--watch", lines=5, NO_COLOR="1")
        frame = self.until(master, "\x1b[?7h")
        self.assertEqual((frame.count("\n"), "key 2" in frame, "key 3" in frame), (4, True, False), frame)
        self.end(process)

    def watched_by_a_pipe(self, *arguments):
        process = subprocess.Popen([CTL, "--url", self.url, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True,
                                   env={"CONVERSECTL_AS": EMAIL, "CONVERSECTL_PASSWORD": PASSWORD})
        for cleanup in (process.stdout.close, process.stderr.close, process.wait, process.kill):
            self.addCleanup(cleanup)
        return process

    def test_json_is_one_document_a_line(self):
        self.of_name("one")
        process = self.watched_by_a_pipe("--json", "apikey", "list", "--watch=1")
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        self.assertEqual(lines, [self.answer] * 2)
        self.end(process)

    def test_a_show_is_watched_and_keeps_its_arguments(self):
        type(self).answer = {"_id": KEY}
        process = self.watched_by_a_pipe("schedules", "show", "--watch", KEY)
        self.assertEqual([process.stdout.readline() for _ in range(3)], [f"_id\t{KEY}\n", "\n", f"_id\t{KEY}\n"])
        self.end(process)

    def test_a_watch_that_fails_at_once_ends_and_a_later_failure_is_shown(self):
        type(self).answer = []
        self.assertEqual(self.run_ctl("apikey", "list", "--watch").returncode, 1)
        self.of_name("one")
        process = self.watched_by_a_pipe("apikey", "list", "--watch", "1")
        process.stdout.readline()
        type(self).answer = {"items": 5}
        self.assertIn("items", process.stderr.readline())


if __name__ == "__main__":
    unittest.main()
