"""conversed behind nginx with config/proxy/nginx.conf: the daemon finds the client's address of each request."""

import http.client
import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import time
import unittest

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
OPENSSL = shutil.which("openssl")
if not NGINX or not OPENSSL:
    print("skipped: nginx or openssl is missing; run `apt install nginx-light openssl`", file=sys.stderr)
    sys.exit(77)

from case import ECHO, DaemonCase  # noqa: E402
from ports import free_port  # noqa: E402

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "config" / "proxy" / "nginx.conf"
FAILURES = 3


class BehindNginx(DaemonCase):
    bundle = ECHO
    settings = (f"trusted_proxies: [127.0.0.1]\nsign_in: {{address_failures: {FAILURES}, account_failures: 1000}}\n"
                "limits: {public_requests_per_second: 1, burst: 5}\n")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = pathlib.Path(cls.folder.name) / "nginx"
        folder.mkdir()
        subprocess.run([OPENSSL, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-keyout", folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True)
        cls.port = free_port()
        site = EXAMPLE.read_text()
        for here, there in (("SERVER_NAME", "localhost"), ("CERTIFICATE_KEY", str(folder / "key.pem")),
                            ("CERTIFICATE", str(folder / "cert.pem")), ("127.0.0.1:8080", f"127.0.0.1:{cls.daemon.ports['api']}"),
                            ("listen 443", f"listen 127.0.0.1:{cls.port}"), ("listen [::]:443", f"listen [::1]:{cls.port}")):
            site = site.replace(here, there)
        (folder / "site.conf").write_text(site)
        (folder / "nginx.conf").write_text(
            f"daemon off; pid {folder}/pid; error_log stderr; worker_processes 1;\n"
            "events {}\n"
            f"http {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;\n"
            f"fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n"
            f"include {folder}/site.conf; }}\n")
        cls.nginx_log = open(folder / "log", "wb")
        cls.addClassCleanup(cls.nginx_log.close)
        cls.nginx = subprocess.Popen([NGINX, "-p", folder, "-c", folder / "nginx.conf"], stderr=cls.nginx_log)
        cls.addClassCleanup(cls.end_nginx)
        cls.wait_for_nginx()

    @classmethod
    def end_nginx(cls):
        cls.nginx.terminate()
        cls.nginx.wait(30)

    @classmethod
    def wait_for_nginx(cls):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", cls.port)) == 0:
                    return
            if cls.nginx.poll() is not None:
                break
        raise AssertionError(f"nginx does not listen: {pathlib.Path(cls.nginx_log.name).read_text()}")

    def through(self, method, path, body=None, headers=None, source="127.0.0.2"):
        """Sends a request through nginx. The default of `source` is not the address of a trusted proxy."""
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=context,
                                                 source_address=(source, 0))
        try:
            return self.daemon.request(method, path, body, headers, connection)
        finally:
            connection.close()

    def direct(self, method, path, body=None, headers=None):
        return self.daemon.request(method, path, body, headers)

    def guess(self, send, client):
        """Signs in with a wrong password, with `client` in X-Forwarded-For. Returns the status."""
        return send("POST", "/auth/oauth2/token", "grant_type=password&username=nobody&password=x&client_id=" + self.client,
                    {"Content-Type": "application/x-www-form-urlencoded", "X-Forwarded-For": client})[0]

    def test_messages_pass_nginx_over_tls(self):
        status, answer, _ = self.through("POST", f"/{self.tokens['echo']}",
                                         {"userId": "u", "sessionId": "tls", "text": "hello"},
                                         source="127.0.0.3")  # another test uses up the limit of 127.0.0.2
        self.assertEqual((status, answer["text"]), (200, "hello"))

    def test_a_client_can_not_forge_its_address(self):
        # nginx appends the client's real address to the client's header. The limit counts the real address.
        statuses = [self.through("GET", f"/{self.tokens['echo']}/outputs?userId=u&sessionId=s",
                                 headers={"X-Forwarded-For": f"198.51.100.{n}"})[0] for n in range(12)]
        self.assertIn(429, statuses)

    def test_each_client_behind_proxies_has_its_own_limit(self):
        # The header has the client and another proxy on loopback. The daemon trusts loopback, so the client's address counts.
        statuses = [self.direct("GET", f"/{self.tokens['echo']}/outputs?userId=u&sessionId=s",
                                headers={"X-Forwarded-For": f"203.0.113.{n}, 127.0.0.1"})[0] for n in range(12)]
        self.assertEqual(set(statuses), {200})

    def test_a_lock_out_holds_for_one_address_and_is_logged_with_it(self):
        self.client = self.daemon.ctl("oauth-client", "add", "--name", "web", "--public", "--password-grant")["clientId"]
        statuses = [self.guess(self.direct, "192.0.2.66") for _ in range(FAILURES + 1)]
        self.assertEqual(statuses[-1], 429, statuses)
        self.assertNotEqual(self.guess(self.direct, "192.0.2.67"), 429)
        self.assertIn('"clientAddress":"192.0.2.66"', self.daemon.log_path.read_text().replace(": ", ":"))

    def test_nginx_allows_management_only_from_loopback(self):
        self.assertEqual(self.through("GET", "/management/status", source="127.0.0.1")[0], 401)
        self.assertEqual(self.through("GET", "/management/status")[0], 403)


if __name__ == "__main__":
    unittest.main()
