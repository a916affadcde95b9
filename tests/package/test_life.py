"""Installs the package in a root, sets it up, runs it as the unit does, upgrades, removes and purges it."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import package

sys.path.insert(0, str(package.REPOSITORY / "tests" / "support"))
from notify_socket import NotifySocket  # noqa: E402

PASSWORD = "correct horse battery staple"
EMAIL = "admin@example.com"
SETTINGS = "/etc/conversed/conversed.yaml"
DATA = "/var/lib/conversed"
PREVIOUS = "0.0.1-1"
OLDER_SCHEMA = 0  # a store that needs the migrations of all versions
LOOKS = 3


class Life(unittest.TestCase):
    """Has a root for each class, with the package installed and configured."""

    @classmethod
    def setUpClass(cls):
        cls.package = package.find()
        cls.root = package.Root(cls.package)
        cls.addClassCleanup(cls.root.close)
        cls.folder = tempfile.TemporaryDirectory(prefix="conversed-life-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.install()

    @classmethod
    def install(cls):
        cls.root.install(cls.package)
        settings = cls.root.file(SETTINGS)
        settings.write_text(re.sub(r"(?m)^(  port: ).*$", r"\g<1>0", settings.read_text()))
        # An administrator runs init as root. The files that it makes still belong to the service.
        cls.root.run("conversed", "init", "--config", SETTINGS, "--organisation", "Test", "--admin", EMAIL,
                     "--password-stdin", input=PASSWORD)

    def setUp(self):
        self.notify = NotifySocket()
        self.addCleanup(self.notify.close)
        self.process = None
        self.addCleanup(self.kill)

    def unit(self):
        """Returns the [Service] section as {key: [values]}."""
        return package.service_section(self.root.file("/lib/systemd/system/conversed.service"))

    def as_the_unit(self, *command):
        """Returns the command that runs `command` in the root with the unit's user, group, umask and system calls."""
        # Debian's Python has Debian's seccomp.
        return ["/usr/bin/python3", "-B", pathlib.Path(__file__).parent / "sandboxed.py", self.root.path,
                self.root.file("/lib/systemd/system/conversed.service"), *command]

    def start(self, environment=None, watchdog_ms=None):
        """Starts the daemon with the unit's command, user, system calls and directories. Returns the READY message."""
        unit = self.unit()
        self.assertEqual(unit["Type"], ["notify"])
        variables = {"PATH": "/usr/sbin:/usr/bin", "STATE_DIRECTORY": f"/var/lib/{unit['StateDirectory'][0]}",
                     "CONFIGURATION_DIRECTORY": f"/etc/{unit['ConfigurationDirectory'][0]}",
                     **self.notify.environment(watchdog_ms), **(environment or {})}
        self.log = open(pathlib.Path(self.folder.name) / "daemon.log", "ab")
        self.addCleanup(self.log.close)
        self.process = subprocess.Popen(self.as_the_unit(*unit["ExecStart"][0].split()), stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, env=variables)
        return self.notify.wait_for_key("READY")

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.notify.wait_for_key("STOPPING")
        self.assertEqual(self.process.wait(60), 0)

    def ports(self):
        return json.loads(self.root.file(f"{DATA}/run/ports.json").read_text())

    def ctl(self, *arguments):
        text = self.root.run("conversectl", "--url", f"http://127.0.0.1:{self.ports()['api']}", "--as", EMAIL, "--json",
                             *arguments, environment={"CONVERSECTL_PASSWORD": PASSWORD})
        return json.loads(text) if text.strip() else None

    def owner(self, path):
        """Returns (user, group, mode) of a path in the root."""
        return tuple(self.root.run("stat", "-c", "%U %G %a", path).split())

    def bundle(self):
        """Writes a bundle in the root and returns its path. Its Flow counts messages."""
        self.root.file("/tmp/count.yaml").write_text(
            "conversed: 1\nproject: {name: Tests, locales: [en]}\n"
            "flows:\n  - name: Count\n    nodes:\n"
            "      - addToContext: {count: \"{{(context.count || 0) + 1}}\"}\n      - say: \"{{context.count}}\"\n"
            "endpoints:\n  - {name: e, flow: Count}\n")
        return "/tmp/count.yaml"

    def say(self, token, text):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.ports()['api']}/{token}",
            json.dumps({"userId": "u", "sessionId": "s", "text": text}).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())["text"]


class Installed(Life):
    def test_files_have_their_owners_and_modes(self):
        self.assertEqual(self.owner(SETTINGS), ("root", "conversed", "640"))
        self.assertEqual(self.owner("/etc/conversed"), ("root", "conversed", "750"))
        self.assertEqual(self.owner(DATA), ("conversed", "conversed", "700"))
        self.assertEqual(self.owner(f"{DATA}/master.key"), ("conversed", "conversed", "600"))
        self.assertEqual(self.owner(f"{DATA}/store.db")[:2], ("conversed", "conversed"))
        shell = self.root.run("getent", "passwd", "conversed").strip().rsplit(":", 1)[1]
        self.assertEqual(shell, "/usr/sbin/nologin")
        # The package does not enable the service; the administrator does.
        self.assertFalse(self.root.file("/etc/systemd/system/multi-user.target.wants/conversed.service").is_symlink())

    def test_systemd_accepts_the_unit(self):
        done = subprocess.run(["chroot", self.root.path, "systemd-analyze", "verify", "--man=no",
                               "/lib/systemd/system/conversed.service"], capture_output=True, text=True)
        said = [line for line in done.stderr.splitlines() if "conversed" in line]
        self.assertEqual((done.returncode, said), (0, []), done.stderr)

    def test_the_daemon_runs_in_the_unit_and_notifies_systemd(self):
        ready = self.start(watchdog_ms=4000)
        self.assertTrue(ready["STATUS"].startswith("Ready."))
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports()['admin']}/readyz", timeout=60) as answer:
            self.assertEqual(answer.status, 200)
        for _ in range(LOOKS):
            self.notify.wait_for_key("WATCHDOG")
        check, reload = self.unit()["ExecReload"]
        self.root.run(*check.split())
        self.assertEqual(reload, "/bin/kill -HUP $MAINPID")
        self.process.send_signal(signal.SIGHUP)
        self.assertIn("MONOTONIC_USEC", self.notify.wait_for_key("RELOADING"))
        self.notify.wait_for_key("READY")
        self.stop()

    def test_the_unit_allows_the_system_calls_of_the_daemon_and_no_others(self):
        nice = subprocess.run(self.as_the_unit("/usr/bin/nice", "-n", "5", "/bin/true"), capture_output=True, text=True)
        self.assertIn("Operation not permitted", nice.stderr, "the filter of system calls is not loaded")
        self.start()
        token = self.ctl("import", self.bundle())["endpoints"][0]["urlToken"]
        self.assertEqual(self.say(token, "one"), "1")
        self.assertTrue(self.ctl("backup", "--name", "sandboxed"))
        self.ctl("rotate-key")
        self.stop()
        sandbox = subprocess.run(self.as_the_unit("/usr/libexec/conversed/conversed-code", "--self-test"), capture_output=True, text=True)
        self.assertEqual(sandbox.returncode, 0, sandbox.stdout + sandbox.stderr)
        log = (pathlib.Path(self.folder.name) / "daemon.log").read_text()
        self.assertNotIn("not permitted", log)

    def test_a_frozen_worker_starves_the_watchdog(self):
        self.start({"CONVERSED_TEST_HOLD_AT": "worker.loop"}, watchdog_ms=4000)
        self.notify.wait_for(lambda message: re.match("No progress: .*worker", message.get("STATUS", "")))
        since = len(self.notify.messages)
        for _ in range(LOOKS):
            self.notify.wait_for_key("STATUS")
        self.assertFalse([message for message in self.notify.messages[since:] if "WATCHDOG" in message])

    def test_wrong_settings_fail_the_reload_and_the_start(self):
        settings = self.root.file(SETTINGS)
        before = settings.read_text()
        self.addCleanup(settings.write_text, before)
        settings.write_text(before + "workerz: 3\n")
        check = self.unit()["ExecReload"][0]
        done = subprocess.run(["chroot", self.root.path, *check.split()], capture_output=True, text=True)
        self.assertEqual(done.returncode, 78)
        self.assertIn("78", self.unit()["RestartPreventExitStatus"][0].split())
        self.assertIn("did you mean workers?", done.stderr)

    def test_the_drain_fits_into_the_time_for_a_stop(self):
        drain = re.search(r"(?m)^shutdown_timeout: (\d+)s$", self.root.file(SETTINGS).read_text())
        limit = re.fullmatch(r"(\d+)s", self.unit()["TimeoutStopSec"][0])
        self.assertLess(int(drain[1]), int(limit[1]))


class Upgraded(Life):
    @classmethod
    def install(cls):
        """Installs the previous version first, so that its data and settings exist."""
        cls.current, cls.package = cls.package, package.repacked(cls.package, PREVIOUS, cls.folder.name)
        super().install()

    def schema(self, path):
        with contextlib.closing(sqlite3.connect(self.root.file(path))) as store:
            return store.execute("SELECT MAX(version) FROM schema_version").fetchone()[0]

    def make_older(self):
        """Replaces the store by one with a schema before the first version."""
        store = self.root.file(f"{DATA}/store.db")
        for suffix in ("", "-wal", "-shm"):
            pathlib.Path(f"{store}{suffix}").unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(store)) as older, older:
            older.execute("CREATE TABLE schema_version (version BIGINT PRIMARY KEY, min_reader BIGINT NOT NULL)")
            older.execute("INSERT INTO schema_version (version, min_reader) VALUES (?, ?)", (OLDER_SCHEMA, OLDER_SCHEMA))
        shutil.chown(store, *(os.stat(self.root.file(f"{DATA}/master.key"))[4:6]))
        store.chmod(0o600)

    def test_1_an_upgrade_keeps_settings_and_data(self):
        self.start()
        token = self.ctl("import", self.bundle())["endpoints"][0]["urlToken"]
        self.assertEqual(self.say(token, "one"), "1")
        self.stop()
        settings = self.root.file(SETTINGS).read_text()
        self.root.install(self.current)
        installed = self.root.run("dpkg-query", "-W", "-f", "${Version} ${db:Status-Status}", "conversed")
        self.assertEqual(installed, f"{package.field(self.current, 'Version')} installed")
        self.assertEqual(self.root.file(SETTINGS).read_text(), settings)
        self.assertEqual(self.owner(SETTINGS), ("root", "conversed", "640"))
        self.start()
        self.assertEqual(self.say(token, "two"), "2")
        self.stop()

    def test_2_a_store_of_an_older_version_is_backed_up_and_migrated(self):
        newest = self.schema(f"{DATA}/store.db")
        self.make_older()
        self.start()
        self.stop()
        self.assertEqual(self.schema(f"{DATA}/store.db"), newest)
        made, = self.root.file(f"{DATA}/backups").iterdir()
        self.assertRegex(made.name, f"^before-migration-.*-schema{OLDER_SCHEMA}$")
        self.assertEqual(self.owner(f"{DATA}/backups/{made.name}/store.db"), ("conversed", "conversed", "600"))
        self.assertEqual(self.schema(f"{DATA}/backups/{made.name}/store.db"), OLDER_SCHEMA)

    def test_3_removal_leaves_settings_and_data(self):
        self.root.run("dpkg", "-r", "conversed")
        self.assertFalse(self.root.file("/usr/bin/conversed").exists())
        self.assertTrue(self.root.file(SETTINGS).exists())
        self.assertTrue(self.root.file(f"{DATA}/store.db").exists())

    def test_4_a_purge_leaves_the_data(self):
        self.root.run("dpkg", "-P", "conversed")
        self.assertFalse(self.root.file("/etc/conversed").exists())
        self.assertTrue(self.root.file(f"{DATA}/store.db").exists())
        self.assertTrue(self.root.file(f"{DATA}/master.key").exists())

    def test_5_a_purge_removes_the_data_if_debconf_says_so(self):
        self.root.install(self.current)
        self.root.run("debconf-set-selections", input="conversed conversed/purge-data boolean true\n")
        self.root.run("dpkg", "-P", "conversed")
        self.assertFalse(self.root.file(DATA).exists())


if __name__ == "__main__":
    try:
        package.base_root(package.find(), [])
    except package.Unavailable as missing:
        print(f"\n!! SKIPPED: this test installs the package in a root: {missing}\n", file=sys.stderr)
        sys.exit(package.SKIPPED)
    os.umask(0o022)
    unittest.main()
