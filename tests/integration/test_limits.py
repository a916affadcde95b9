"""Limits on sign-ins, requests and connections protect users from attackers; and properties of every answer."""

import base64
import contextlib
import http.client
import json
import threading
import unittest

from case import ECHO, DaemonCase
from daemon_process import EMAIL, PASSWORD

FAILURES = 5
RATE = "limits: {public_requests_per_second: 100000, burst: 100000}\n"


class LimitsCase(DaemonCase):
    bundle = ECHO

    def ask(self, method, path, source="127.0.0.1", body=None, headers=None):
        """Sends one request from an address of this machine, with the path unchanged. Returns (status, text, headers)."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.daemon.ports["api"], timeout=60,
                                                           source_address=(source, 0))) as connection:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), answer.headers

    def sign_in(self, password, source, email=EMAIL):
        credentials = base64.b64encode(f"{email}:{password}".encode()).decode()
        return self.ask("GET", "/management/apikeys", source, headers={"Authorization": f"Basic {credentials}"})[0]

    def log_lines(self, event):
        lines = (json.loads(line) for line in self.daemon.log_path.read_text().splitlines() if line.startswith("{"))
        return [line for line in lines if line["event"] == event]


class SignIns(LimitsCase):
    settings = f"sign_in: {{account_failures: {FAILURES}}}\n" + RATE

    def test_guesses_do_not_lock_a_user_out_at_a_known_address_even_after_a_restart(self):
        home, elsewhere = "127.0.0.1", "127.0.0.66"
        self.assertEqual(self.sign_in(PASSWORD, home), 200)
        for _ in range(2):
            self.assertEqual([self.sign_in("guess", elsewhere) for _ in range(FAILURES)], [401] * FAILURES)
            # New spellings of the e-mail address, so that the daemon does not use a cached answer.
            self.assertEqual(self.sign_in(PASSWORD, elsewhere, EMAIL.capitalize()), 429)
            self.assertEqual(self.sign_in(PASSWORD, home, EMAIL.upper()), 200)
            self.assertEqual(self.daemon.terminate(), 0)
            self.daemon.start()

    def test_a_browsers_requests_at_once_wait_for_one_check_of_the_password(self):
        for round in range(3):
            # A new key ends the daemon's memory of verified passwords.
            self.daemon.ctl("apikey", "create", "--name", f"key {round}")
            statuses = []
            threads = [threading.Thread(target=lambda: statuses.append(self.sign_in(PASSWORD, "127.0.0.1")))
                       for _ in range(12)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(statuses, [200] * 12)


class Flood(LimitsCase):
    settings = "sign_in: {account_failures: 1000000, address_failures: 0}\n" + RATE

    def test_guesses_from_many_addresses_do_not_starve_sign_ins(self):
        guessers = 80
        stop, all_guess = threading.Event(), threading.Event()
        guesses = []

        def guess(source):
            while not stop.is_set():
                guesses.append(self.sign_in("guess", source, f"{source}@example.com"))
                if len(guesses) >= guessers:
                    all_guess.set()

        threads = [threading.Thread(target=guess, args=(f"127.0.1.{n}",)) for n in range(1, guessers + 1)]
        for thread in threads:
            thread.start()
        try:
            self.assertTrue(all_guess.wait(120))
            # These sign-ins come from new addresses. Sign-ins from known addresses would not wait behind the guesses.
            statuses = [self.sign_in(PASSWORD, f"127.0.2.{n}") for n in range(1, 6)]
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(statuses, [200] * 5)
        self.assertGreater(len(guesses), guessers)


class Strangers(LimitsCase):
    settings = "limits: {public_requests_per_second: 5, burst: 5, connections_per_address: 8}\n"

    def test_requests_of_one_address_are_limited_and_others_are_not(self):
        path = f"/{self.tokens['echo']}/outputs?userId=u&sessionId=s"
        self.assertIn(429, [self.ask("GET", path, "127.0.0.2")[0] for _ in range(40)])
        self.assertEqual(self.ask("GET", path, "127.0.0.3")[0], 200)

    def test_connections_of_one_address_are_limited(self):
        connections = [http.client.HTTPConnection("127.0.0.1", self.daemon.ports["api"], timeout=30,
                                                  source_address=("127.0.0.4", 0)) for _ in range(10)]
        statuses = []
        for connection in connections:
            with contextlib.suppress(OSError):  # the daemon may close the connection before the request
                connection.request("GET", "/openapi.json")
                statuses.append(connection.getresponse().status)
        for connection in connections:
            connection.close()
        self.assertIn(429, statuses[8:] or [429])
        self.assertEqual(self.ask("GET", "/unknown", "127.0.0.5")[0], 404)


class Answers(LimitsCase):
    def test_each_error_is_logged_with_its_trace_id(self):
        wrong = json.dumps({"URLToken": "x"})
        for method, path, body, headers, route in [
                ("GET", "/unknown?secret=1", None, {}, ""),
                ("POST", "/v2.0/endpoint/inject", wrong, {"X-API-Key": self.key}, "/v2.0/endpoint/inject"),
                ("GET", "/management/status", None, {}, "/management/status")]:
            status, _, answered = self.ask(method, path, body=body, headers=headers)
            lines = [line for line in self.log_lines("request failed") if line["traceId"] == answered["X-Trace-Id"]]
            self.assertEqual([(line["method"], line["route"], line["status"]) for line in lines],
                             [(method, route, status)])
        self.assertNotIn("secret=1", self.daemon.log_path.read_text())

    def test_an_encoded_slash_does_not_match_a_slash_of_a_route(self):
        self.assertEqual(self.ask("GET", "/management%2fstatus")[0], 404)
        self.assertEqual(self.ask("GET", "/management/status")[0], 401)

    def test_management_redirects_to_the_console(self):
        for path, location in (("/new/management", "management/console"), ("/management/", "console")):
            status, _, headers = self.ask("GET", path)
            self.assertEqual((status, headers["Location"]), (302, location))

    def test_every_answer_forbids_caching_and_sniffing(self):
        for path in ("/management/status", "/auth/oauth2/token", f"/{self.tokens['echo']}/outputs"):
            _, _, headers = self.ask("GET", path)
            self.assertEqual((headers["Cache-Control"], headers["X-Content-Type-Options"]), ("no-store", "nosniff"))

    def test_web_pages_can_not_read_the_admin_port(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.daemon.ports["admin"], timeout=30)
        for path in ("/metrics", "/healthz", "/unknown"):
            connection.request("GET", path, headers={"Origin": "https://example.com"})
            answer = connection.getresponse()
            answer.read()
            self.assertIsNone(answer.headers["Access-Control-Allow-Origin"])
        connection.close()


if __name__ == "__main__":
    unittest.main()
