"""Runs a PostgreSQL server for tests: on a Unix socket, with its data in a temporary folder, and never as root.

As a program: postgres.py COMMAND... starts a server and runs the command with CONVERSED_TEST_POSTGRES=URL. It returns the
command's exit code, or 77 if PostgreSQL is missing.
"""

import contextlib
import os
import pathlib
import pwd
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

SKIPPED = 77
SUPERUSER = "conversed"
KEPT = pathlib.Path(__file__).resolve().parents[2] / "build" / "tools" / "postgres"


class Unavailable(Exception):
    """This machine has no PostgreSQL, or no user to run it as."""


class Failed(Exception):
    """The server or a statement failed."""


def newest_programs():
    """Returns the folder of the newest server's programs in Debian's place, or else in the path."""
    folders = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda each: int(each.parts[-3]))
    if folders:
        return folders[-1].parent
    found = shutil.which("initdb")
    if not found:
        raise Unavailable("initdb is missing")
    return pathlib.Path(found).resolve().parent


def account():
    """Returns the user that runs the server if the test runs as root, since PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise Unavailable("PostgreSQL does not run as root, and there is no user postgres or nobody")


def run_sql(url, sql):
    """Runs the statement and returns the output of psql."""
    done = subprocess.run([newest_programs() / "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql, url],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(done.stderr)
    return done.stdout.strip()


def url_of(*servers):
    """Returns the URL of the servers. With several, clients use the one that takes writes."""
    hosts = ",".join(urllib.parse.quote(str(server.folder), safe="") for server in servers)
    which = "&target_session_attrs=read-write" if len(servers) > 1 else ""
    return f"postgresql://{SUPERUSER}@/postgres?host={hosts}{which}"


def has_library(name):
    """Returns whether the newest server has the library to preload."""
    return (newest_programs().parent / "lib" / f"{name}.so").exists()


class Server:
    """One server. It can be killed and started again with the same data, address and `settings` (NAME=VALUE). With a
    `primary`, a running server, it is the primary's hot standby until `promote`."""

    def __init__(self, primary=None, settings=()):
        self.settings = [argument for setting in settings for argument in ("-c", setting)]
        self.programs = newest_programs()
        self.account = account()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="conversed-postgres-"))
        self.process = None
        if self.account:
            os.chown(self.folder, self.account.pw_uid, self.account.pw_gid)
        self.socket = str(self.folder / ".s.PGSQL.5432")
        self.url = url_of(self)
        try:
            if primary:
                self.run("pg_basebackup", "-h", primary.folder, "-U", SUPERUSER, "-R", "-c", "fast", "--no-sync")
            else:
                self.make_data()
        except BaseException:
            self.close()
            raise

    def make_data(self):
        """Makes the data of a new server. They are the same for each, so initdb makes them once for its version and account."""
        data, kept = self.folder / "data", KEPT / f"{self.programs}-{os.geteuid()}".strip("/").replace("/", "-")
        if kept.exists():
            subprocess.run(["cp", "-a", kept, data], check=True)
            return
        # The server needs no password, since only its owner can read the folder.
        self.run("initdb", "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        with contextlib.suppress(OSError):
            KEPT.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=KEPT) as folder:
                subprocess.run(["cp", "-a", data, folder], check=True)
                os.rename(f"{folder}/data", kept)  # fails if another test was first

    def run(self, program, *arguments):
        """Runs one of PostgreSQL's programs on the server's data."""
        done = subprocess.run([self.programs / program, "-D", self.folder / "data", *arguments], capture_output=True,
                              text=True, cwd=self.folder, **self.identity())
        if done.returncode != 0:
            raise Failed(done.stdout + done.stderr)

    def promote(self):
        """Promotes a standby. The server takes writes when this returns."""
        self.run("pg_ctl", "promote", "-w", "-t", "60", "-s")

    def identity(self):
        if not self.account:
            return {}
        return {"user": self.account.pw_uid, "group": self.account.pw_gid, "extra_groups": []}

    def start(self, timeout=60):
        """Starts the server and waits until it takes connections."""
        log = open(self.folder / "server.log", "ab")
        with log:
            self.process = subprocess.Popen(
                [self.programs / "postgres", "-D", self.folder / "data", "-k", self.folder, "-c", "listen_addresses=",
                 "-c", "fsync=off", "-c", "max_connections=200", *self.settings],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, **self.identity())
        ended = os.pidfd_open(self.process.pid)
        deadline = time.monotonic() + timeout
        try:
            while subprocess.run([self.programs / "pg_isready", "-q", "-h", self.folder]).returncode != 0:
                if select.select([ended], [], [], 0.05)[0] or time.monotonic() > deadline:
                    raise Failed((self.folder / "server.log").read_text()[-4000:])
        finally:
            os.close(ended)
        return self

    def run_sql(self, sql):
        return run_sql(self.url, sql)

    def signal_backend(self, pid, number):
        """Sends a signal to the process of one session. Ignores an ended process."""
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def kill(self):
        """Kills the server without a shutdown, as a crash does. Keeps its data."""
        if self.process:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
            self.process = None

    def close(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def main(arguments):
    try:
        server = Server()
    except Unavailable as missing:
        print(f"SKIPPED: this test needs PostgreSQL: {missing}; install the package postgresql", file=sys.stderr)
        return SKIPPED
    try:
        server.start()
        return subprocess.run(arguments, env={**os.environ, "CONVERSED_TEST_POSTGRES": server.url}).returncode
    finally:
        server.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
