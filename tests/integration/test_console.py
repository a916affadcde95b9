"""The web console in Chromium: its views of conversations and dead letters, and its defense against hostile data and pages."""

import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

from browser import CHROMIUM, FLAGS
from case import DaemonCase, daemon_process

BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
connections:
  - {name: crm, type: httpBearer, fields: {token: "${CRM_TOKEN}"}}
flows:
  - name: Orders
    nodes:
      - if: {condition: "input.text == 'fail'", then: [{httpRequest: {connection: crm, url: "http://127.0.0.1:1/"}}]}
      - say: "Heard: {{input.text}}"
endpoints:
  - {name: web, flow: Orders}
"""
# As markup this text would change the page's title.
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


class Console(DaemonCase):
    bundle = BUNDLE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.daemon.request("POST", f"/new/{cls.tokens['web']}", {"userId": "ann", "sessionId": "s", "text": HOSTILE},
                           {"X-API-Key": cls.key})
        cls.daemon.request("POST", f"/new/{cls.tokens['web']}", {"userId": "bob", "sessionId": "s", "text": "fail"},
                           {"X-API-Key": cls.key})

    def dom(self, view):
        """Opens a view of the console in Chromium. Returns the HTML of its `main` element."""
        who = urllib.parse.quote(daemon_process.EMAIL) + ":" + urllib.parse.quote(daemon_process.PASSWORD)
        address = f"http://{who}@127.0.0.1:{self.daemon.ports['api']}/new/management/console#{view}"
        with tempfile.TemporaryDirectory(prefix="conversed-chromium-", ignore_cleanup_errors=True) as folder:
            done = subprocess.run([CHROMIUM, *FLAGS, f"--user-data-dir={folder}", "--virtual-time-budget=10000",
                                   "--dump-dom", address], capture_output=True, text=True, timeout=120)
        shown = re.search(r"<title>(.*)</title>.*<main[^>]*>(.*)</main>", done.stdout, re.DOTALL)
        self.assertTrue(shown, done.stderr[-2000:])
        self.assertEqual(shown[1], "conversed")
        self.assertNotIn('role="alert"', shown[2])
        return shown[2]

    def test_the_overview_shows_the_daemons_health(self):
        page = self.dom("overview")
        for text in ("healthy", "Dead letters", "Partitions", "Version"):
            self.assertIn(text, page)

    def test_the_console_shows_text_of_conversations_never_as_markup(self):
        self.assertIn("ann", self.dom("sessions"))
        page = self.dom("/".join(["sessions", self.tokens["web"], "ann", "s"]))
        self.assertIn("Heard: &lt;img src=x", page)

    def test_shows_dead_letters_with_their_reasons(self):
        page = self.dom("deadletters")
        self.assertIn("nodes[0].then[0]", page)
        self.assertIn("Run again", page)

    def test_shows_which_nodes_use_a_connection(self):
        connection = self.report["connections"][0]["_id"]
        self.assertIn("crm", self.dom("connections"))
        page = self.dom("connection/" + connection)
        for text in ("Orders", "nodes[0].then[0]", "httpRequest", "Sessions that meet it"):
            self.assertIn(text, page)
        self.assertNotIn("token-of-the-connection", page)

    def test_shows_flows_jobs_and_schedules(self):
        self.assertIn("Orders", self.dom("flows"))
        self.assertIn("newest", self.dom("flow/" + self.report["flows"][0]["_id"] + "/Orders"))
        self.assertIn("None.", self.dom("jobs"))
        self.assertIn("None.", self.dom("schedules"))
        self.assertIn("None.", self.dom("timers"))

    def test_the_page_needs_credentials_and_runs_no_other_script(self):
        status, _, headers = self.daemon.request("GET", "/new/management/console")
        self.assertEqual(status, 401)
        self.assertIn("Basic", headers["WWW-Authenticate"])
        status, _, headers = self.daemon.request("GET", "/new/management/console", basic=True)
        self.assertEqual(status, 200)
        policy = headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertIn("frame-ancestors 'none'", policy)
        self.assertNotIn("unsafe", policy)

    def test_requests_of_other_sites_with_remembered_credentials_are_refused(self):
        _, letters, _ = self.daemon.request("GET", "/new/management/deadletters", basic=True)
        discard = f"/new/management/deadletters/{letters['items'][0]['_id']}/discard"
        for told in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
                     {"Origin": "https://evil.example"}):
            status, _, _ = self.daemon.request("POST", discard, headers=told, basic=True)
            self.assertEqual(status, 403, told)
        _, after, _ = self.daemon.request("GET", "/new/management/deadletters", basic=True)
        self.assertEqual(after["items"], letters["items"])


if __name__ == "__main__":
    if shutil.which("chromium") is None:
        print("SKIPPED: chromium is not installed; `./dev test` installs it")
        sys.exit(77)
    unittest.main()
