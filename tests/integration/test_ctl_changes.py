"""A connection breaks after conversectl has sent a change: the daemon has made it, and the answer is lost."""

import http.client
import http.server
import re
import subprocess
import threading
import unittest

from case import ECHO
from ctl_case import CTL, CtlCase


class LostAnswers(CtlCase):
    """A proxy keeps its connections. It passes changes on, and then closes the connection without an answer."""

    bundle = ECHO

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        case = cls

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                connection = http.client.HTTPConnection("127.0.0.1", case.daemon.ports["api"], timeout=60)
                headers = {name: value for name, value in self.headers.items() if name != "Host"}
                connection.request(self.command, self.path, body, headers)
                answer = connection.getresponse()
                payload = answer.read()
                connection.close()
                is_change = self.command != "GET"
                if is_change:
                    case.changes.append((self.path, self.headers.get("Idempotency-Key"), answer.status))
                if is_change and case.loses:
                    case.loses -= 1
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.getheader("Content-Type", "application/json"))
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            do_GET = do_POST = do_PUT = do_DELETE = pass_on

            def log_message(self, *_):
                pass

        cls.proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        cls.addClassCleanup(cls.proxy.server_close)
        cls.addClassCleanup(cls.proxy.shutdown)
        threading.Thread(target=cls.proxy.serve_forever, daemon=True).start()

    def through_proxy(self, *arguments, loses=0, code=0, input=None):
        type(self).changes, type(self).loses = [], loses
        done = subprocess.run([CTL, "--url", f"http://127.0.0.1:{self.proxy.server_address[1]}", *arguments], capture_output=True,
                              text=True, input=input, timeout=120, env=self.daemon.environment)
        self.assertEqual(done.returncode, code, done)
        return done

    def session(self, name):
        return ("--endpoint", "echo", "--user", f"user of {name}", "--session", name)

    def test_an_inject_is_sent_once_and_its_repeat_has_no_second_effect(self):
        inject = ("inject", *self.session("lost"), "--text", "one")
        lost = self.through_proxy(*inject, loses=1, code=1)
        self.assertEqual([(path, status) for path, _, status in self.changes], [("/management/inject", 202)])
        key = self.changes[0][1]
        self.assertIn(f"the outcome is unknown, since the request was sent. Repeat the command with --idempotency-key {key}",
                      lost.stderr)
        self.through_proxy(*inject, "--idempotency-key", key)
        self.assertEqual([each[1] for each in self.changes], [key])
        self.through_proxy(*inject[:-1], "two")
        self.assertNotEqual(self.changes[0][1], key, "each command has a key of its own")
        self.assertEqual(self.texts_of("echo", "lost", 2), ["one", "two"])
        self.assertEqual(len(self.outputs("echo", "lost")), 2)

    def test_a_schedule_is_made_once(self):
        inject = ("inject", *self.session("later"), "--text", "x", "--in", "2h")
        key = re.search(r"--idempotency-key (\S+):", self.through_proxy(*inject, loses=1, code=1).stderr)[1]
        self.through_proxy(*inject, "--idempotency-key", key)
        later = [each for each in self.daemon.manage("GET", "schedules")["items"] if each["sessionId"] == "later"]
        self.assertEqual(len(later), 1)

    def test_a_change_without_a_key_is_sent_once_and_its_outcome_unknown(self):
        lost = self.through_proxy("apikey", "create", "--name", "lost key", loses=1, code=1)
        self.assertIn("Look whether it was done before you repeat the command", lost.stderr)
        self.assertEqual([key["name"] for key in self.daemon.manage("GET", "apikeys")["items"]].count("lost key"), 1)

    def test_a_message_of_chat_is_repeated_under_its_key(self):
        done = self.through_proxy("chat", "echo", "--user", "user of talk", "--session", "talk", loses=1, input="hello\n")
        self.assertEqual(done.stdout.count("< hello\n"), 1, done)
        keys = [key for _, key, _ in self.changes]
        self.assertEqual(len(keys), 2)
        self.assertTrue(keys[0] and keys[0] == keys[1], keys)
        self.assertEqual([each["text"] for each in self.outputs("echo", "talk")], ["hello"])

    def test_a_daemon_that_is_away_got_no_request(self):
        done = subprocess.run([CTL, "--url", "http://127.0.0.1:9", "inject", "--endpoint", "a" * 64, "--user", "a", "--session", "s",
                               "--text", "x"], capture_output=True, text=True, timeout=60, env=self.daemon.environment)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("is the daemon running", done.stderr)
        self.assertNotIn("unknown", done.stderr)


if __name__ == "__main__":
    unittest.main()
