"""Sets up, starts, kills and requests a conversed daemon, for tests, benchmarks and the demo."""

import base64
import contextlib
import http.client
import json
import os
import pathlib
import select
import shutil
import signal
import sqlite3
import subprocess
import time

ORGANISATION = "Test"
EMAIL = "admin@example.com"
PASSWORD = "correct horse battery staple"


class Failed(Exception):
    """The daemon did not take a step that the test needs."""


class Daemon:
    """One daemon with its data folder. It can start and end many times. One thread, except for `request`."""

    def __init__(self, binaries, folder, settings="", environment=None, port=0):
        self.binaries = pathlib.Path(binaries)
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.config = self.folder / "conversed.yaml"
        self.config.write_text(
            f"data_dir: {self.folder / 'data'}\n"
            f"listen: {{address: 127.0.0.1, port: {port}}}\n"
            "admin: {port: 0}\n"
            "egress: {allow: [127.0.0.0/8]}\n" + settings
        )
        self.environment = dict(os.environ)
        self.environment.update(environment or {})
        if "public_requests_per_second" not in settings:
            # All clients of a test share one address.
            self.environment["CONVERSED_LIMITS_PUBLIC_REQUESTS_PER_SECOND"] = "0"
        self.environment["CONVERSECTL_PASSWORD"] = PASSWORD
        self.environment["CONVERSECTL_AS"] = EMAIL
        self.process = None
        self.log_path = self.folder / "daemon.log"
        self.ports = {}

    def init(self):
        done = subprocess.run(
            [self.binaries / "conversed", "init", "--config", self.config, "--organisation", ORGANISATION,
             "--admin", EMAIL, "--password-stdin"],
            input=PASSWORD, text=True, capture_output=True, env=self.environment, timeout=60)
        if done.returncode != 0:
            raise Failed(f"init: {done.stderr}")

    def take_key(self, other):
        """Copies the master key of another daemon, so that both can share a store."""
        (self.folder / "data").mkdir(mode=0o700, exist_ok=True)
        shutil.copy(other.folder / "data" / "master.key", self.folder / "data" / "master.key")

    def spawn(self, extra_environment=None):
        """Starts the daemon and returns at once."""
        environment = dict(self.environment)
        environment.update(extra_environment or {})
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [self.binaries / "conversed", "--config", self.config],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        self.ended = os.pidfd_open(self.process.pid)

    def start(self, extra_environment=None, timeout=60):
        """Starts the daemon and waits until it is ready. Returns False if it ended before."""
        ports_file = self.folder / "data" / "run" / "ports.json"
        ports_file.unlink(missing_ok=True)
        self.spawn(extra_environment)
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if ports_file.exists():
                try:
                    self.ports = json.loads(ports_file.read_text())
                    if self.get_status(self.ports["admin"], "/readyz") == 200:
                        return True
                except (OSError, ValueError, http.client.HTTPException):
                    pass
            if self.wait_end(0.02):
                return False
        raise Failed(f"the daemon was not ready within {timeout} s; read {self.log_path}")

    def wait_end(self, seconds):
        """Waits at most `seconds` for the end of the process. Returns whether it has ended."""
        ready, _, _ = select.select([self.ended], [], [], seconds)
        if ready:
            self.process.wait()
        return bool(ready)

    @contextlib.contextmanager
    def locked_store(self):
        """Locks the store for writing, so that the daemon's writes fail. Then waits until a running daemon is ready: until
        then it refuses writes."""
        store = sqlite3.connect(self.folder / "data" / "store.db", isolation_level=None, timeout=60)
        with contextlib.closing(store):
            store.execute("PRAGMA wal_autocheckpoint=0")
            store.execute("BEGIN IMMEDIATE")
            try:
                yield
            finally:
                store.execute("ROLLBACK")
        deadline = time.monotonic() + 60
        while self.is_running():
            with contextlib.suppress(OSError, http.client.HTTPException):  # a test may let it end meanwhile
                if self.get_status(self.ports["admin"], "/readyz") == 200:
                    return
            if time.monotonic() > deadline:
                raise Failed(f"the daemon did not write to its store again; read {self.log_path}")
            self.wait_end(0.02)

    def signal(self, number):
        self.process.send_signal(number)

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def terminate(self, timeout=60):
        """Asks the daemon to drain. Returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def get_status(self, port, path):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        finally:
            connection.close()

    def connect(self, timeout=30):
        return http.client.HTTPConnection("127.0.0.1", self.ports["api"], timeout=timeout)

    def request(self, method, path, body=None, headers=None, connection=None, basic=False):
        """Sends one request. Returns (status, parsed body or text, headers)."""
        own = connection or self.connect()
        headers = dict(headers or {})
        if basic:
            credentials = base64.b64encode(f"{EMAIL}:{PASSWORD}".encode()).decode()
            headers["Authorization"] = f"Basic {credentials}"
        payload = None
        if body is not None:
            payload = body if isinstance(body, (bytes, str)) else json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        try:
            own.request(method, path, payload, headers)
            answer = own.getresponse()
            text = answer.read().decode()
        finally:
            if connection is None:
                own.close()
        try:
            return answer.status, json.loads(text), answer.headers
        except ValueError:
            return answer.status, text, answer.headers

    def ctl(self, *arguments, check=True, input=None):
        """Runs conversectl --json. Returns the parsed output."""
        done = subprocess.run(
            [self.binaries / "conversectl", "--url", f"http://127.0.0.1:{self.ports['api']}", "--json",
             *arguments],
            capture_output=True, text=True, env=self.environment, timeout=120, input=input)
        if check and done.returncode != 0:
            raise Failed(f"conversectl {' '.join(map(str, arguments))}: {done.stderr}")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def manage(self, method, path, body=None, timeout=120):
        """Sends an operator's request, as conversectl does, without the time that a start of conversectl takes. Returns the
        answer's body."""
        with contextlib.closing(self.connect(timeout)) as connection:
            status, answer, _ = self.request(method, "/management/" + path, body, basic=True, connection=connection)
        if status // 100 != 2:
            raise Failed(f"{method} /management/{path}: {status} {answer}")
        return answer

    def full_status(self, timeout=30):
        """Returns the answer of `conversectl status`."""
        return self.manage("GET", "status", timeout=timeout)

    def status(self):
        """Returns the counts of remaining work by name, and the counts of work done."""
        body = self.full_status()
        counts = body["counts"]
        left = {"lag": body["queue"]["lag"]} | {
            name: counts[name] for name in ("pendingDeliveries", "pendingCalls", "inInboxes")}
        return {name: count for name, count in left.items() if count}, (counts["appended"], counts["sessionCommits"])

    def wait_idle(self, timeout=120):
        """Waits until the daemon is idle."""
        wait_idle([self], timeout)


def wait_idle(daemons, timeout=120):
    """Waits until daemons that share a log and a store are idle. It reads their figures at different instants, so all must
    be idle twice without work in between."""
    deadline = time.monotonic() + timeout
    before = None
    while time.monotonic() < deadline:
        statuses = [daemon.status() for daemon in daemons]
        left, done = [left for left, _ in statuses if left], [done for _, done in statuses]
        if not left and done == before:
            return
        before = None if left else done
        if any(daemon.wait_end(0.05) for daemon in daemons):
            raise Failed("a daemon ended before it was idle")
    raise Failed(f"the daemons were not idle within {timeout} s: {left}")
