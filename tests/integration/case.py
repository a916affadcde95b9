"""Shared by the integration tests: a daemon with a project, on free ports in a temporary folder."""

import contextlib
import http.client
import os
import pathlib
import re
import sys
import tempfile
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cluster  # noqa: E402
import daemon_process  # noqa: E402,F401
from daemon_process import Daemon  # noqa: E402
from upstream import Upstream  # noqa: E402
from webhook_receiver import Receiver  # noqa: E402

BIN = os.environ["CONVERSED_TEST_BIN"]
SECRET = "whsec_dGhlIHNlY3JldCBvZiBhbGwgdGhlc2UgdGVzdHM="
CONNECTION_TOKEN = "token-of-the-connection-3f9a"
ECHO = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - {name: Echo, nodes: [{say: "{{input.text}}"}]}
endpoints:
  - {name: echo, flow: Echo}
"""


class DaemonCase(unittest.TestCase):
    """Each class has one daemon. `bundle` is its project. UPSTREAM in `bundle` and `settings` stands for the upstream's address."""

    bundle = ""
    settings = ""

    @classmethod
    def bring_up(cls):
        """Makes the daemons' folder, and the servers to which the daemons send requests."""
        cls.folder = tempfile.TemporaryDirectory(prefix="conversed-test-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.upstream = Upstream()
        cls.addClassCleanup(cls.upstream.stop)
        cls.receiver = Receiver(SECRET)
        cls.addClassCleanup(cls.receiver.stop)
        cls.environment = {"HOOK_URL": cls.receiver.url, "HOOK_SECRET": SECRET, "CRM_TOKEN": CONNECTION_TOKEN,
                           **cluster.environment()}

    @classmethod
    def make_daemon(cls, folder, settings):
        daemon = Daemon(BIN, folder, settings.replace("UPSTREAM", cls.upstream.url), environment=cls.environment)
        cls.addClassCleanup(daemon.kill)
        return daemon

    @classmethod
    def beside(cls, name, settings=None):
        """Makes another daemon with the master key of the first daemon. Without `settings` it gets those of the class.
        Does not start the daemon."""
        daemon = cls.make_daemon(pathlib.Path(cls.folder.name) / f"of {name}", settings or cls.settings)
        daemon.take_key(cls.daemon)
        return daemon

    @classmethod
    def setUpClass(cls):
        cls.bring_up()
        cls.daemon = cls.make_daemon(cls.folder.name, cls.settings)
        cls.daemon.init()
        cls.daemon.start()
        cls.tokens = cls.load(cls.bundle)
        cls.key = cls.daemon.manage("POST", "apikeys", {"name": "tests"})["key"]

    @classmethod
    def load(cls, text, prune=False):
        """Imports a bundle and stores its report in `report`. `prune` deletes parts that the bundle lacks. Returns the
        URLTokens by Endpoint name."""
        path = pathlib.Path(cls.folder.name) / "bundle.yaml"
        path.write_text(text.replace("UPSTREAM", cls.upstream.url))
        cls.report = cls.import_file(path, prune)
        return {endpoint["name"]: endpoint["urlToken"] for endpoint in cls.report["endpoints"]}

    @classmethod
    def load_elsewhere(cls, organisation, text):
        """Makes another organisation and imports a bundle into it. Returns the URLTokens by Endpoint name."""
        admin, password = f"admin@{organisation.lower()}.example", "a long enough passphrase"
        cls.daemon.ctl("organisation", "add", organisation, "--admin", admin, "--password-stdin", input=f"{password}\n")
        own = dict(cls.daemon.environment)
        cls.daemon.environment.update(CONVERSECTL_AS=admin, CONVERSECTL_PASSWORD=password)
        path = pathlib.Path(cls.folder.name) / f"{organisation.lower()}.yaml"
        path.write_text(text)
        report = cls.daemon.ctl("import", str(path))
        cls.daemon.environment.clear()
        cls.daemon.environment.update(own)
        return {endpoint["name"]: endpoint["urlToken"] for endpoint in report["endpoints"]}

    @classmethod
    def import_file(cls, path, prune=False):
        """Imports a bundle with the variables of the daemon's environment that it names. Returns the report."""
        text = path.read_text()
        named = {name: cls.daemon.environment[name] for name in re.findall(r"\$\{(\w+)\}", text) if name in cls.daemon.environment}
        return cls.daemon.manage("POST", "import", {"file": str(path), "text": text, "environment": named, "prune": prune})

    def say(self, endpoint, session, text=None, headers=None, **body):
        """Sends a user's message. Returns (status, body)."""
        message = {"userId": f"user of {session}", "sessionId": session, **body}
        if text is not None:
            message["text"] = text
        status, answer, _ = self.daemon.request("POST", f"/{self.tokens[endpoint]}", message, headers)
        return status, answer

    def inject(self, endpoint, session, headers=None, connection=None, **body):
        message = {"URLToken": self.tokens[endpoint], "userId": f"user of {session}", "sessionId": session, **body}
        return self.daemon.request("POST", "/v2.0/endpoint/inject", message,
                                   {"X-API-Key": self.key, **(headers or {})}, connection)

    def push(self, endpoint, session, number, **body):
        """Injects under a key of its own. Returns the status, or None without an answer."""
        with contextlib.suppress(OSError, http.client.HTTPException):  # the daemon may end before it answers
            return self.inject(endpoint, session, {"Idempotency-Key": f"{session} {number}"}, **body)[0]
        return None

    def push_through_a_kill(self, point, endpoint, session, number, **body):
        """Injects into a daemon that dies at the point, then once more into the next one, as a client does."""
        self.daemon.terminate()
        self.daemon.start({"CONVERSED_TEST_KILL_AT": point})
        self.push(endpoint, session, number, **body)
        self.assertTrue(self.daemon.wait_end(60), point)
        self.daemon.start()
        self.assertEqual(self.push(endpoint, session, number, **body), 200)
        self.daemon.wait_idle()

    def outputs(self, endpoint, session, after=0, wait=0):
        query = urllib.parse.urlencode({"userId": f"user of {session}", "sessionId": session, "after": after,
                                        "wait": wait})
        status, page, _ = self.daemon.request("GET", f"/{self.tokens[endpoint]}/outputs?{query}")
        self.assertEqual(status, 200, page)
        return page["items"]

    def texts_of(self, endpoint, session, count):
        """Waits until the session has `count` texts. Returns them."""
        texts = []
        while len(texts) < count:
            page = self.outputs(endpoint, session, after=len(texts), wait=30)
            self.assertTrue(page, texts)
            texts += [item["text"] for item in page]
        return texts

    def time_out_once_despite_kills(self, endpoint, texts):
        """Kills the daemon around the time-out that a message at the Endpoint begins. Expects the texts once each time."""
        # Before the append; after the append, without the mark in the store; before the commit of the Turn; after it.
        for point in ("timer.before_append", "timer.after_append", "turn.before_submit", "turn.after_commit"):
            with self.subTest(point):
                self.say(endpoint, point, "hi")
                self.daemon.terminate()
                self.daemon.start({"CONVERSED_TEST_KILL_AT": point})
                self.assertTrue(self.daemon.wait_end(60))
                self.daemon.start()
                self.assertEqual(self.texts_of(endpoint, point, len(texts)), texts)
                self.daemon.wait_idle()
                self.daemon.kill()
                self.daemon.start()
                self.daemon.wait_idle()
                self.assertEqual(self.texts(endpoint, point), texts)

    def texts(self, endpoint, session):
        """Reads all pages of outputs. Returns their texts."""
        items = []
        while page := self.outputs(endpoint, session, items[-1]["seq"] if items else 0):
            items += page
        return [item["text"] for item in items]
