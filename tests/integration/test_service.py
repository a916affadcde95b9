"""The daemon under a service manager: notifications, the watchdog, reloads, credentials."""

import base64
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import tempfile
import time
import unittest

import case
from case import BIN
from daemon_process import Daemon, Failed
from notify_socket import NotifySocket
from thread_names import thread_names

NOBODY = 65534
WATCHDOG_MS = 4000
# Rounds of the supervisor. So many rounds without a WATCHDOG message prove that the watchdog is not fed.
ROUNDS = 3


def wait_until(condition, seconds=60):
    """Waits until the condition is true. Returns False if that takes longer than `seconds`."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


class ServiceCase(unittest.TestCase):
    """A daemon and its notify socket. The test starts the daemon."""

    settings = "workers: 2\n"

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="conversed-test-")
        self.addCleanup(self.folder.cleanup)
        self.notify = NotifySocket()
        self.addCleanup(self.notify.close)
        self.daemon = Daemon(BIN, self.folder.name, self.settings)
        self.addCleanup(self.daemon.kill)

    def ports(self):
        return json.loads((self.daemon.folder / "data" / "run" / "ports.json").read_text())

    def spawn_ready(self, environment=None, watchdog_ms=None):
        self.daemon.spawn({**self.notify.environment(watchdog_ms), **(environment or {})})
        ready = self.notify.wait_for_key("READY")
        self.daemon.ports = self.ports()
        return ready

    def log_lines(self):
        return [json.loads(line) for line in self.daemon.log_path.read_text().splitlines()]

    def write_settings(self, text):
        self.daemon.config.write_text(self.daemon.config.read_text() + text)

    def reload(self):
        """Reloads the settings. Returns the messages at the begin and at the end of the reload."""
        self.daemon.process.send_signal(signal.SIGHUP)
        return self.notify.wait_for_key("RELOADING"), self.notify.wait_for_key("READY")


class Notifications(ServiceCase):
    def test_ready_is_sent_when_the_daemon_listens_and_consumes(self):
        ready = self.spawn_ready()
        self.assertEqual(ready["READY"], "1")
        self.assertTrue(ready["STATUS"].startswith("Ready. Events accepted: "), ready)
        self.assertEqual(self.daemon.get_status(self.daemon.ports["admin"], "/readyz"), 200)

    def test_a_stop_is_announced_with_its_time_limit(self):
        self.spawn_ready()
        self.daemon.process.send_signal(signal.SIGTERM)
        self.notify.wait_for_key("STOPPING")
        extension = self.notify.wait_for_key("EXTEND_TIMEOUT_USEC")
        self.assertGreater(int(extension["EXTEND_TIMEOUT_USEC"]), 20_000_000, "the extension is shorter than shutdown_timeout")
        self.assertEqual(self.daemon.process.wait(60), 0)

    def test_the_watchdog_is_fed_and_the_status_shows_the_work(self):
        self.daemon.init()
        self.spawn_ready(watchdog_ms=WATCHDOG_MS)
        for _ in range(ROUNDS):
            self.notify.wait_for_key("WATCHDOG")
        bundle = pathlib.Path(self.folder.name) / "echo.yaml"
        bundle.write_text(case.ECHO)
        token = self.daemon.ctl("import", str(bundle))["endpoints"][0]["urlToken"]
        status, _, _ = self.daemon.request(
            "POST", f"/{token}", {"userId": "u", "sessionId": "s", "text": "hello"})
        self.assertEqual(status, 200)
        # The message and its Turn may be in the rates of different status lines.
        missing = {"accepted", "Turns"}
        while missing:
            shown = self.notify.wait_for(lambda message: message.get("STATUS", "").startswith("Ready."))["STATUS"]
            missing -= {figure for figure in missing if f"{figure}: 0.0/s" not in shown}


class Threads(ServiceCase):
    def test_each_thread_is_named_after_its_task(self):
        """`./dev bench` and `./dev profile` sum the costs of threads with the same name."""
        self.daemon.init()
        self.spawn_ready()
        expected = {"http", "log writer", "consumer", "worker 1", "worker 2", "committer", "deliverer", "deadlines",
                    "looks"}

        def named():
            return set(thread_names(self.daemon.process.pid).values())

        self.assertTrue(wait_until(lambda: expected <= named()), named())


class AfterAKill(ServiceCase):
    def test_ready_does_not_wait_for_events_in_hand(self):
        self.daemon.init()
        self.spawn_ready()
        bundle = pathlib.Path(self.folder.name) / "echo.yaml"
        bundle.write_text(case.ECHO)
        token = self.daemon.ctl("import", str(bundle))["endpoints"][0]["urlToken"]
        self.assertEqual(self.daemon.terminate(), 0)

        self.spawn_ready({"CONVERSED_TEST_KILL_AT": "turn.before_run"})
        with self.assertRaises((OSError, http.client.HTTPException)):
            self.daemon.request("POST", f"/{token}", {"userId": "u", "sessionId": "s", "text": "hello"})
        self.daemon.process.wait(60)

        fifo = pathlib.Path(self.folder.name) / "fifo"
        os.mkfifo(fifo)
        self.daemon.spawn({**self.notify.environment(), "CONVERSED_TEST_HOLD_AT": "turn.before_run",
                           "CONVERSED_TEST_HOLD_FIFO": str(fifo)})
        with open(fifo, "w"):  # opens when the daemon holds the event's Turn
            self.notify.wait_for_key("READY")


class StoreThatFails(ServiceCase):
    def test_a_start_that_waits_for_the_store_obeys_a_stop(self):
        self.daemon.init()
        with contextlib.closing(sqlite3.connect(self.daemon.folder / "data" / "store.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            self.daemon.spawn(self.notify.environment(WATCHDOG_MS))
            for _ in range(ROUNDS):
                self.notify.wait_for_key("EXTEND_TIMEOUT_USEC")
            self.assertFalse([message for message in self.notify.messages if "READY" in message])
            self.assertEqual([line for line in self.log_lines() if line["event"] == "not started"], [])
            self.daemon.process.send_signal(signal.SIGTERM)
            self.assertEqual(self.daemon.process.wait(60), 0)

    def test_status_and_why_tell_the_error_of_a_store_that_fails(self):
        self.daemon.init()
        self.spawn_ready()
        self.assertEqual(self.daemon.full_status()["store"], {"healthy": True, "error": None})
        file = self.daemon.folder / "data" / "store.db"
        with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            # The entry of a failed sign-in is a write.
            self.daemon.request("GET", "/management/status", headers={"Authorization": "Basic " + base64.b64encode(
                b"admin@example.com:wrong").decode()})
            self.assertTrue(wait_until(lambda: not self.daemon.full_status()["store"]["healthy"]))
            error = self.daemon.full_status()["store"]["error"]
            self.assertRegex(error, f"^{file}: .*locked")
            status, answer, _ = self.daemon.request("GET", "/management/why/unknown", basic=True)
            self.assertEqual(status, 200, answer)
            self.assertEqual(answer["waits"][0]["subject"], f"The store refuses writes: {error}.")

    def test_a_missing_store_is_refused_if_the_log_has_events(self):
        self.daemon.init()
        self.spawn_ready()
        bundle = pathlib.Path(self.folder.name) / "echo.yaml"
        bundle.write_text(case.ECHO)
        token = self.daemon.ctl("import", str(bundle))["endpoints"][0]["urlToken"]
        self.assertEqual(self.daemon.request("POST", f"/{token}", {"userId": "u", "sessionId": "s", "text": "hi"})[0], 200)
        self.assertEqual(self.daemon.terminate(), 0)
        for file in (self.daemon.folder / "data").glob("store.db*"):
            file.unlink()
        self.assertFalse(self.daemon.start())
        words = "the store is missing, but the log has events"
        self.assertIn(words, self.log_lines()[-1]["error"])
        with self.assertRaisesRegex(Failed, words):
            self.daemon.init()
        (self.daemon.folder / "data" / "log").rename(self.daemon.folder / "data" / "old log")
        self.daemon.init()

    def test_the_daemon_starts_without_ports_json(self):
        data = self.daemon.folder / "data"
        data.mkdir(mode=0o700)
        (data / "run").write_text("in its way")
        self.daemon.spawn(self.notify.environment())
        self.notify.wait_for_key("READY")
        errors = [line["error"] for line in self.log_lines() if line["event"] == "run/ports.json can't be written; trying again"]
        self.assertEqual(errors, [f"{data}/run/ports.json can't be written: Not a directory"])


class Starting(ServiceCase):
    # No broker listens on this port.
    settings = "queue: {driver: kafka, kafka: {bootstrap_servers: \"127.0.0.1:1\"}}\n"

    def test_a_start_that_waits_for_the_log_asks_for_time_and_is_not_ready(self):
        self.daemon.spawn(self.notify.environment(WATCHDOG_MS))
        self.notify.wait_for(lambda message: message.get("STATUS", "").startswith("Starting: "))
        for _ in range(ROUNDS):
            self.notify.wait_for_key("EXTEND_TIMEOUT_USEC")
        self.assertFalse([message for message in self.notify.messages if "READY" in message])


class Watchdog(ServiceCase):
    def starves(self, point, loop):
        """Freezes a loop at this point. Checks that status and log name the loop, a regular expression, and that the daemon no
        longer feeds the watchdog."""
        self.spawn_ready({"CONVERSED_TEST_HOLD_AT": point}, watchdog_ms=WATCHDOG_MS)
        self.notify.wait_for(lambda message: re.match(f"No progress: .*{loop}", message.get("STATUS", "")))
        since = len(self.notify.messages)
        for _ in range(ROUNDS):  # each round repeats the status
            self.notify.wait_for_key("STATUS")
        later = self.notify.messages[since:]
        self.assertFalse([message for message in later if "WATCHDOG" in message], later)
        logged = [line for line in self.log_lines() if line["event"] == "loops make no progress"]
        self.assertTrue([line for line in logged if re.search(loop, line["loops"])], logged)

    def test_a_frozen_worker_starves_the_watchdog(self):
        self.starves("worker.loop", r"worker \d")

    def test_a_frozen_scheduler_starves_the_watchdog(self):
        self.starves("scheduler.loop", "scheduler")

    def test_a_frozen_http_client_starves_the_watchdog(self):
        self.starves("http.loop", "upstreams")

    def test_a_frozen_rerunner_starves_the_watchdog(self):
        self.starves("rerunner.loop", "rerunner")

    def test_a_frozen_api_thread_starves_the_watchdog(self):
        self.starves("api.loop", r"(api|admin) \d")


class Reload(ServiceCase):
    settings = "# the test writes public_requests_per_second later\n"

    def test_a_reload_changes_settings_and_names_settings_that_need_a_restart(self):
        self.spawn_ready()
        self.write_settings("limits: {public_requests_per_second: 1, burst: 1}\nlog: {level: warn}\nflows: {max_steps: 7}\n")
        reloading, ready = self.reload()
        self.assertGreater(int(reloading["MONOTONIC_USEC"]), 0)
        self.assertEqual(ready["STATUS"], "Settings reloaded; these need a restart: flows.max_steps")
        named = [line for line in self.log_lines() if line["event"] == "some settings need a restart"]
        self.assertEqual(named[0]["keys"], "flows.max_steps")
        # All at once: on a slow machine, requests one after the other may stay below the limit.
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(lambda _: self.daemon.request("GET", "/openapi.json")[0], range(8)))
        self.assertIn(429, statuses, "the reload did not apply the new limit")

    def test_a_reload_with_one_problem_changes_no_setting(self):
        self.spawn_ready()
        before = self.daemon.config.read_text()
        self.write_settings("limits: {public_requests_per_second: 1, burst: 1}\nworkerz: 3\n")
        _, ready = self.reload()
        self.assertIn("refused", ready["STATUS"])
        refused = [line for line in self.log_lines() if line["event"] == "settings refused; the old ones stay"]
        self.assertEqual(len(refused), 1)
        self.assertIn("workerz: unknown key; did you mean workers?", refused[0]["problem"])
        statuses = [self.daemon.request("GET", "/openapi.json")[0] for _ in range(5)]
        self.assertEqual(set(statuses), {200})
        # The daemon accepts the corrected settings.
        self.daemon.config.write_text(before)
        _, ready = self.reload()
        self.assertEqual(ready["STATUS"], "Settings reloaded")


class Credentials(ServiceCase):
    def setUp(self):
        super().setUp()
        self.credentials = pathlib.Path(self.folder.name) / "credentials"
        self.credentials.mkdir()
        self.environment = {"CREDENTIALS_DIRECTORY": str(self.credentials)}

    def write(self, name, text, mode=0o440):
        path = self.credentials / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(mode)  # systemd's credentials have this mode if an access list admits the service's user

    def test_the_master_key_is_read_from_the_credentials(self):
        self.write("master.key", "1 " + "ab" * 32 + "\n")
        self.daemon.environment.update(self.environment)
        self.daemon.init()
        self.assertTrue(self.daemon.start())
        self.assertFalse((self.daemon.folder / "data" / "master.key").exists())
        bundle = pathlib.Path(self.folder.name) / "secret.yaml"
        bundle.write_text(case.ECHO + "connections:\n  - {name: c, type: httpBearer, fields: {token: s3cret}}\n")
        self.daemon.ctl("import", str(bundle))
        self.assertEqual(self.daemon.terminate(), 0)
        store = b"".join(path.read_bytes() for path in (self.daemon.folder / "data").glob("store.db*"))
        self.assertTrue(re.search(rb"1\.1\.[A-Za-z0-9+/]{40}", store), "nothing was sealed with key 1")

    def test_a_master_key_that_the_store_does_not_use_is_refused(self):
        self.daemon.init()
        self.write("master.key", "1 " + "ab" * 32 + "\n")
        self.assertFalse(self.daemon.start(self.environment))
        self.assertIn("lacks a key of", self.log_lines()[-1]["error"])
        shutil.copy(self.daemon.folder / "data" / "master.key", self.credentials / "copy")
        self.write("master.key", (self.credentials / "copy").read_text())
        self.assertTrue(self.daemon.start(self.environment))

    def test_a_malformed_credential_is_reported_without_its_value(self):
        self.write("contact_center.secret", "t00-short")
        self.assertFalse(self.daemon.start(self.environment))
        log = self.daemon.log_path.read_text()
        self.assertIn("contact_center.secret: expected", log)
        self.assertNotIn("t00-short", log)


class Handbook(ServiceCase):
    """systemd/README.md explains everything that an operator can see."""

    root = pathlib.Path(__file__).resolve().parents[2]

    def setUp(self):
        super().setUp()
        self.handbook = (self.root / "systemd" / "README.md").read_text()

    def test_every_metric_is_explained(self):
        self.spawn_ready()
        connection = http.client.HTTPConnection("127.0.0.1", self.daemon.ports["admin"], timeout=30)
        self.addCleanup(connection.close)
        connection.request("GET", "/metrics")
        families = re.findall(r"(?m)^# TYPE (conversed_\w+) ", connection.getresponse().read().decode())
        self.assertGreater(len(families), 20)
        self.assertEqual([name for name in families if f"`{name}" not in self.handbook], [])

    def test_every_warning_and_error_of_the_log_is_explained(self):
        sources = "".join(path.read_text() for path in (self.root / "daemon").rglob("*.cc"))
        events = set(re.findall(r'log::(?:error|warn)\("([^"]*)"', sources))
        self.assertGreater(len(events), 20)
        self.assertEqual([event for event in sorted(events) if f"`{event}`" not in self.handbook], [])


    def test_the_command_for_init_has_the_credentials_of_the_unit(self):
        unit = (self.root / "systemd" / "conversed.service.in").read_text()
        handed_over = re.findall(r"(?m)^LoadCredential=(.*)$", unit)
        command = re.search(r"systemd-run(?:[^\n]*\\\n)+[^\n]*conversed init", self.handbook)[0]
        self.assertEqual(re.findall(r"-p LoadCredential=(\S+)", command), handed_over)
        for key in ("User", "UMask"):
            self.assertIn(f" -p {key}={re.search(f'(?m)^{key}=(.*)$', unit)[1]}", command)


class Privacy(ServiceCase):
    def test_only_the_owner_reads_the_data_folder_whatever_the_umask(self):
        before = os.umask(0)
        try:
            self.daemon.init()
            self.assertTrue(self.daemon.start())
        finally:
            os.umask(before)
        self.daemon.ctl("backup")
        data = self.daemon.folder / "data"
        for path in (data, *data.rglob("*")):
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o700 if path.is_dir() else 0o600, path)

    def test_a_data_folder_that_others_may_read_is_refused(self):
        self.daemon.init()
        data = self.daemon.folder / "data"
        data.chmod(0o755)
        self.assertFalse(self.daemon.start())
        self.assertIn(f"run `chmod 700 {data}`", self.log_lines()[-1]["error"])
        data.chmod(0o700)
        self.assertTrue(self.daemon.start())

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_no_other_process_of_the_same_user_reads_the_memory(self):
        folder = pathlib.Path(self.folder.name)
        folder.chmod(0o755)
        pipe = folder / "pipe"
        os.mkfifo(pipe)
        pipe.chmod(0o644)
        # conversed waits for a password, conversectl for the bundle.
        for name, arguments in (("conversed", ("init", "--organisation", "A", "--admin", "a@x.example", "--password-stdin")),
                                ("conversectl", ("flow", "check", pipe))):
            shutil.copy(pathlib.Path(BIN) / name, folder / name)
            with subprocess.Popen([folder / name, *arguments], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  user=NOBODY, group=NOBODY, extra_groups=[], env={"HOME": "/nonexistent"}) as process:
                proc = pathlib.Path(f"/proc/{process.pid}")

                def is_readable_only_by_root(name=name, proc=proc):
                    return proc.joinpath("comm").read_text().strip() == name and proc.joinpath("environ").stat().st_uid == 0

                try:
                    self.assertTrue(wait_until(is_readable_only_by_root), name)
                finally:
                    process.kill()


@unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
class Owner(ServiceCase):
    def test_files_that_root_makes_belong_to_the_owner_of_the_folder(self):
        data = self.daemon.folder / "data"
        data.mkdir(mode=0o700)
        os.chown(data, NOBODY, NOBODY)
        pathlib.Path(self.folder.name).chmod(0o755)
        self.daemon.config.chmod(0o644)
        self.daemon.init()
        self.assertTrue(self.daemon.start())
        status = pathlib.Path(f"/proc/{self.daemon.process.pid}/status").read_text()
        self.assertIn(f"Uid:\t{NOBODY}\t{NOBODY}\t{NOBODY}\t{NOBODY}\n", status)
        self.assertEqual(self.daemon.terminate(), 0)
        for path in data.rglob("*"):
            self.assertEqual(path.stat().st_uid, NOBODY, path)
        self.assertEqual(stat.S_IMODE((data / "master.key").stat().st_mode), 0o600)


if __name__ == "__main__":
    unittest.main()
