"""Each kind of bad input gets an error that names the place. It changes nothing."""

import socket
import subprocess
import unittest

from case import BIN, ECHO, DaemonCase

BAD_BODIES = [
    (b"", "body"), (b"{", "JSON"), (b"[]", "object"), (b'{"userId":1}', "userId"), (b"[" * 100_000, "nested"),
    (b'{"userId":"u","sessionId":"s","text":"t","text":"u"}', "twice"),
    (b'{"userId":"u","sessionId":"s","text":"\\ud800"}', "JSON"),
    (b'{"userId":"u","sessionId":"s","text":"\xff"}', "JSON"),
    (b'{"userId":"u","sessionId":"s","data":{"n":1e400}}', "range"),
    (b'{"userId":"","sessionId":"s","text":"t"}', "userId"),
    (b'{"userId":"u\\u0007","sessionId":"s","text":"t"}', "userId"),
    (b'{"userId":"u","sessionId":"s"}', "text"),
    (b'{"userId":"u","sessionId":"s","text":5}', "text"),
    (b'{"userId":"u","sessionId":"s","data":[]}', "data"),
]

BAD_HTTP = [
    (b"NONSENSE\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n", 413),
    (b"BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n", 501),
    (b"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 40_000 + b"\r\n\r\n", 431),
]


class BadInput(DaemonCase):
    bundle = ECHO

    def tearDown(self):
        # The bad input began no conversation, and the daemon still answers.
        status, answer = self.say("echo", "after", "well?")
        self.assertEqual((status, answer["text"]), (200, "well?"))
        sessions = self.daemon.ctl("sessions", "list")["items"]
        self.assertEqual({session["sessionId"] for session in sessions}, {"after"})

    def test_a_large_import_without_credentials_is_refused_before_its_body_is_sent(self):
        head = b"POST /management/import HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n"
        for credentials in (b"", b"X-API-Key: " + self.key.encode() + b"\r\n", b"Authorization: Bearer x\r\n"):
            with self.subTest(credentials=credentials[:13]):
                with socket.create_connection(("127.0.0.1", self.daemon.ports["api"]), 30) as client:
                    client.sendall(head + credentials + b"\r\n")
                    answer = client.makefile("rb").read().decode()  # reads until the daemon closes the connection
                self.assertRegex(answer, "^HTTP/1.1 401 ")
                self.assertIn('WWW-Authenticate: Basic realm="conversed"', answer)

    def test_a_bundle_of_five_megabytes_is_imported(self):
        text = ECHO + "# " + "x" * 5_000_000 + "\n"
        bundle = self.daemon.folder / "large.yaml"
        bundle.write_text(text)
        self.assertEqual(self.daemon.ctl("import", str(bundle))["project"]["name"], "Tests")

    def test_wrong_bodies_are_refused(self):
        for body, named in BAD_BODIES:
            with self.subTest(body=body[:60]):
                for path, headers in [(f"/{self.tokens['echo']}", {}),
                                      (f"/inject/{self.tokens['echo']}", {"X-API-Key": self.key})]:
                    status, answer, _ = self.daemon.request("POST", path, body, headers)
                    self.assertEqual(status, 413 if len(body) > 65536 else 400, answer)
                    if status == 400:
                        self.assertIn(named, answer["detail"])

    def test_malformed_http_is_refused(self):
        for raw, expected in BAD_HTTP:
            with self.subTest(raw=raw[:60]):
                with socket.create_connection(("127.0.0.1", self.daemon.ports["api"]), timeout=30) as connection:
                    connection.sendall(raw)
                    head = connection.recv(65536).decode()
                self.assertEqual(int(head.split()[1]), expected, head)
                self.assertIn("Access-Control-Allow-Origin: *", head)
                self.assertIn("traceId", head)

    def test_wrong_credentials_and_url_tokens_are_refused(self):
        body = {"URLToken": self.tokens["echo"], "userId": "u", "sessionId": "s", "text": "t"}
        for headers in [{}, {"X-API-Key": "wrong"}, {"X-API-Key": self.key[:-1] + "x"}, {"Authorization": "Basic eDp5"}]:
            status, answer, sent = self.daemon.request("POST", "/v2.0/endpoint/inject", body, headers)
            self.assertEqual(status, 401, answer)
            self.assertIn("WWW-Authenticate", sent)
        for token in ["0" * 64, "x"]:
            status, answer, _ = self.daemon.request(
                "POST", "/v2.0/endpoint/inject", {**body, "URLToken": token}, {"X-API-Key": self.key})
            self.assertIn(status, (400, 404), answer)

    def test_each_problem_of_a_bundle_is_reported_with_its_line(self):
        path = self.daemon.folder / "bad.yaml"
        path.write_text("conversed: 1\nproject: {nam: Tests}\nflows:\n  - name: Echo\n    nodes:\n"
                        "      - shout: x\n      - say: '{{1 +}}'\n      - goTo: nowhere\n")
        done = subprocess.run(
            [f"{BIN}/conversectl", "--url", f"http://127.0.0.1:{self.daemon.ports['api']}", "import", path],
            capture_output=True, text=True, env=self.daemon.environment, timeout=60)
        self.assertEqual(done.returncode, 1)
        for place in ["bad.yaml:2", "bad.yaml:6", "bad.yaml:7", "bad.yaml:8", "flows[0].nodes[0]", "shout", "nowhere"]:
            self.assertIn(place, done.stderr)

    def test_each_problem_of_the_settings_is_reported_with_its_line(self):
        path = self.daemon.folder / "bad-settings.yaml"
        path.write_text("listen:\n  port: eighty\nlisten_port: 1\nworkers: -3\napi: {body_timeout: soon}\n")
        done = subprocess.run([f"{BIN}/conversed", "--config", path, "--check-config"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 78)
        for place in [":2", ":3", ":4", ":5", "listen.port", "listen_port", "workers", "api.body_timeout", "eighty"]:
            self.assertIn(place, done.stderr)

    def test_a_taken_port_is_refused_with_its_setting(self):
        other = self.make_daemon(self.daemon.folder / "beside", "")
        other.init()
        for listener, group in (("api", "LISTEN"), ("admin", "ADMIN")):
            port = self.daemon.ports[listener]
            self.assertFalse(other.start({f"CONVERSED_{group}_PORT": str(port)}))
            self.assertRegex(other.log_path.read_text(), rf"cannot listen on 127.0.0.1:{port}: .*{group.lower()}.port")

    def test_a_check_names_the_file_that_it_read(self):
        def check(*arguments):
            return subprocess.run([f"{BIN}/conversed", "--check-config", *arguments], capture_output=True, text=True, timeout=60)
        path = self.daemon.folder / "good-settings.yaml"
        path.write_text("workers: 2\n")
        self.assertEqual(check("--config", path).stdout, f"The settings in {path} are fine.\n")
        unread = check()
        self.assertEqual((unread.returncode, unread.stdout),
                         (0, "The built-in settings are fine; no file was read. Name yours: --config FILE\n"))
        for program in (("conversed", "--check-config"), ("conversectl", "restore", self.daemon.folder)):
            refused = subprocess.run([f"{BIN}/{program[0]}", *program[1:], "--config", ""], capture_output=True, text=True, timeout=60)
            self.assertEqual(refused.returncode, 2, refused)
            self.assertIn("--config: the ", refused.stderr)

    def test_wrong_kafka_properties_are_reported_without_their_values(self):
        path = self.daemon.folder / "bad-kafka.yaml"
        path.write_text("queue:\n  driver: kafka\n  kafka:\n    bootstrap_servers: [127.0.0.1:1]\n    properties:\n"
                        "      - acks=hunter2\n      - nosuch=hunter2\n      - socket.timeout.ms=hunter2\n"
                        "      - client.rack=a\nworkers: -3\n")
        done = subprocess.run([f"{BIN}/conversed", "--config", path, "--check-config"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 78)
        for name in ["acks", "nosuch", "socket.timeout.ms"]:
            self.assertRegex(done.stderr, f"queue.kafka.properties: .*{name}")
        self.assertIn("workers", done.stderr)
        self.assertNotIn("client.rack", done.stderr)
        self.assertNotIn("hunter2", done.stderr)

    def test_a_second_init_is_refused(self):
        done = subprocess.run(
            [f"{BIN}/conversed", "init", "--config", self.daemon.config, "--organisation", "Other", "--admin",
             "x@example.com", "--password-stdin"], input="another pass phrase", capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("in use", done.stderr)


if __name__ == "__main__":
    unittest.main()
