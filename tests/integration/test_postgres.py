"""A daemon whose log is Kafka and whose store is PostgreSQL: each accepted event has its effects once, despite kills of the
daemon or of its servers."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import signal
import subprocess
import threading

from case import BIN
from kafka_case import PostgresCase, cluster_main
from main_job import MainJob

import postgres  # case.py adds its folder to the path


class TheMainJob(MainJob, PostgresCase):
    def test_the_store_is_only_in_the_database(self):
        self.assertEqual(self.say("echo", "where", "here")[1]["text"], "here")
        self.assertFalse((pathlib.Path(self.folder.name) / "data" / "store.db").exists())
        self.assertEqual(self.server.run_sql("SELECT count(*) FROM outputs WHERE text = 'here'"), "1")

    def test_each_event_runs_once_and_in_order_across_a_clean_stop(self):
        for number in range(50):
            self.assertEqual(self.inject("echo", "clean", text=str(number))[0], 200)
        self.assertEqual(self.daemon.terminate(), 0)
        self.assertTrue(self.daemon.start())
        self.assert_once_and_in_order("clean", [str(number) for number in range(50)])

    def test_a_change_in_the_database_is_seen_without_a_restart(self):
        key = self.daemon.ctl("apikey", "create", "--name", "brief")["key"]
        headers = {"X-API-Key": key}
        self.assertEqual(self.inject("echo", "keys", headers, text="a")[0], 200)
        self.server.run_sql("DELETE FROM api_keys WHERE name = 'brief'")
        while self.inject("echo", "keys", headers, text="b")[0] != 401:
            self.assertFalse(self.daemon.wait_end(0.01), "the daemon ended")


class Kills(PostgresCase):
    def inject_in_background(self, pool, sessions):
        """Injects into all sessions at once and waits until each has enough events. Returns (results by session, futures)."""
        results = {session: ([], []) for session in sessions}
        events = [threading.Event() for _ in sessions]
        work = [pool.submit(self.inject_until_it_ends, session, *results[session], enough)
                for session, enough in zip(sessions, events)]
        for enough in events:
            self.assertTrue(enough.wait(120))
        return results, work

    def test_a_kill_of_the_daemon_neither_loses_nor_doubles_effects(self):
        for round in range(3):
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                results, work = self.inject_in_background(pool, [f"killed {round}.{number}" for number in range(4)])
                self.daemon.kill()
                for each in work:
                    each.result()
            self.assertTrue(self.daemon.start())
            for session, (accepted, maybe) in results.items():
                self.assert_once_and_in_order(session, accepted, maybe)

    def test_a_kill_of_the_database_neither_loses_nor_doubles_effects(self):
        accepted, maybe = [], []
        for round in range(3):
            self.assertEqual(self.inject("echo", "database", text=f"before {round}")[0], 200)
            accepted.append(f"before {round}")
            self.server.kill()
            number = 0
            while self.ready() or not number:  # until the daemon notices the loss
                text = f"down {round}.{number}"
                status, _, _ = self.inject("echo", "database", text=text)
                (accepted if status == 200 else maybe).append(text)
                number += 1
            self.server.start()
            self.wait_ready(True)
        self.assertEqual(self.inject("echo", "database", text="after")[0], 200)
        self.assert_once_and_in_order("database", [*accepted, "after"], maybe)

    def test_the_daemon_is_not_ready_while_the_database_hangs(self):
        self.assertEqual(self.inject("echo", "hanging", text="before")[0], 200)
        self.daemon.wait_idle()
        pids = [int(pid) for pid in self.server.run_sql(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'conversed'").split()]
        for pid in pids:
            self.server.signal_backend(pid, signal.SIGSTOP)
        try:
            status, _, _ = self.inject("echo", "hanging", text="during")
            self.wait_ready(False)
        finally:
            for pid in pids:
                self.server.signal_backend(pid, signal.SIGCONT)
        self.wait_ready(True)
        self.assert_once_and_in_order("hanging", ["before", "during"] if status == 200 else ["before"], ["during"])


class FailOver(PostgresCase):
    """Two servers: the first server confirms a commit when the standby has it too. The standby takes over."""

    server_settings = ["synchronous_standby_names=*"]

    @classmethod
    def store_url(cls):
        cls.standby = cls.make_server(primary=cls.server)
        cls.server.run_sql("CREATE TABLE first ()")  # waits until the standby has the table
        return postgres.url_of(cls.server, cls.standby)

    def test_a_fail_over_to_the_standby_neither_loses_nor_doubles_effects(self):
        accepted, maybe = [], []

        def inject(text):
            status, _, _ = self.inject("echo", "moved", text=text)
            (accepted if status == 200 else maybe).append(text)

        for number in range(20):
            inject(f"before {number}")
        self.assertEqual(len(accepted), 20)
        self.server.kill()
        number = 0
        while self.ready() or not number:
            inject(f"between {number}")
            number += 1
        self.standby.promote()
        self.wait_ready(True)
        for number in range(20):
            inject(f"after {number}")
        self.assertIn("after 19", accepted)
        self.assert_once_and_in_order("moved", accepted, maybe)
        self.assertEqual(self.standby.run_sql("SELECT count(*) FROM outputs WHERE text = 'after 19'"), "1")


class LateServers(PostgresCase):
    """The daemon starts before its servers."""

    def end_all(self, *servers):
        self.daemon.kill()
        for server in servers:
            server.kill()

    def start_alone(self, extra_environment=None):
        """Starts the daemon and waits until it listens."""
        ports_file = pathlib.Path(self.folder.name) / "data" / "run" / "ports.json"
        ports_file.unlink(missing_ok=True)
        self.daemon.spawn(extra_environment)
        while not ports_file.exists():
            self.assertFalse(self.daemon.wait_end(0.05), "the daemon ended; see its log")
        self.daemon.ports = json.loads(ports_file.read_text())

    def admin(self, path):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.daemon.ports["admin"])) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def assert_refuses_all(self, session):
        self.assertEqual(self.admin("/healthz")[0], 200)
        self.assertEqual(self.admin("/readyz"), (503, "not ready: the store is not there yet\n"))
        self.assertIn("\nconversed_ready 0\n", self.admin("/metrics")[1])
        status, body, headers = self.inject("echo", session, text="refused")
        self.assertEqual((status, body["detail"]), (503, "The daemon waits for its store; try again later."))
        self.assertIn("Retry-After", headers)
        self.assertEqual(self.say("echo", session, text="refused")[0], 503)
        self.assertEqual(self.daemon.request("GET", "/management/status", basic=True)[0], 503)
        self.assertEqual(self.daemon.request("GET", "/nothing")[0], 503)
        large = self.daemon.request("POST", "/management/import", "x" * 1_000_000, basic=True)
        self.assertEqual(large[0], 503)
        status, body, _ = self.daemon.request("POST", "/auth/oauth2/token", "grant_type=password")
        self.assertEqual((status, body["error"]), (503, "temporarily_unavailable"))

    def test_a_daemon_refuses_requests_until_its_database_starts(self):
        self.assertEqual(self.inject("echo", "early", text="before")[0], 200)
        self.end_all(self.server)
        self.start_alone()
        self.assert_refuses_all("early")
        self.server.start()
        self.wait_ready(True)
        self.assertEqual(self.inject("echo", "early", text="after")[0], 200)
        self.assert_once_and_in_order("early", ["before", "after"])

    def test_a_daemon_without_database_and_broker_waits_for_both(self):
        self.assertEqual(self.inject("echo", "alone", text="before")[0], 200)
        self.end_all(self.server, self.broker)
        self.start_alone()
        self.assert_refuses_all("alone")
        self.server.start()
        while "its store" in (answer := self.inject("echo", "alone", text="refused"))[1]["detail"]:
            self.assertFalse(self.daemon.wait_end(0.05), "the daemon ended")
        self.assertEqual(answer[0], 503, answer)
        self.assertFalse(self.ready())
        self.broker.start()
        self.wait_ready(True)
        self.assertEqual(self.inject("echo", "alone", text="after")[0], 200)
        self.assert_once_and_in_order("alone", ["before", "after"])

    def test_a_daemon_that_waits_for_its_database_stops_cleanly(self):
        self.end_all(self.server)
        self.start_alone()
        self.assertEqual(self.daemon.terminate(), 0)
        self.assertFalse((pathlib.Path(self.folder.name) / "data" / "run" / "ports.json").exists())
        self.server.start()
        self.assertTrue(self.daemon.start())

    def test_a_refusal_of_the_database_is_logged_once_and_tried_again(self):
        self.end_all()
        self.start_alone({"CONVERSED_STORE_POSTGRES_URL": self.server.url.replace("//conversed@", "//late@")})
        self.assert_refuses_all("refused")
        self.server.run_sql("CREATE ROLE late SUPERUSER LOGIN")
        self.wait_ready(True)
        lines = [line for line in self.daemon.log_path.read_text().splitlines() if 'role \\"late\\"' in line]
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("trying again", lines[0])

    def test_a_daemon_does_not_start_on_the_store_of_a_newer_program(self):
        self.end_all()
        self.server.run_sql("INSERT INTO schema_version (version, min_reader) VALUES (9999, 9999)")
        self.assertFalse(self.daemon.start())
        self.assertEqual(self.daemon.process.returncode, 1)
        self.assertIn("written by a newer program", self.daemon.log_path.read_text())
        self.server.run_sql("DELETE FROM schema_version WHERE version = 9999")
        self.assertTrue(self.daemon.start())


class Partitions(PostgresCase):
    """The number of partitions grows without a change in the order of any session."""

    SESSIONS = [f"moved {number}" for number in range(24)]

    def inject_all(self, text):
        for session in self.SESSIONS:
            self.assertEqual(self.inject("echo", session, text=text)[0], 200)

    def stop_and_grow_to(self, partitions):
        self.assertEqual(self.daemon.terminate(), 0)
        self.broker.add_partitions("conversed.events", partitions)
        self.assertFalse(self.daemon.start(), "the daemon starts although the topic has new partitions")
        self.assertIn(f"has {partitions} partitions", self.daemon.log_path.read_text())

    def open_epoch(self, killed_at=None):
        kill = {"CONVERSED_TEST_KILL_AT": killed_at} if killed_at else {}
        return subprocess.run([f"{BIN}/conversed", "new-epoch", "--config", self.daemon.config], capture_output=True,
                              text=True, env={**os.environ, **self.environment, **kill}, timeout=120)

    def test_unfinished_records_move_once_and_in_order_despite_kills(self):
        self.inject_all("before")
        self.daemon.wait_idle()
        self.stop_and_grow_to(19)
        opened = self.open_epoch()
        self.assertEqual(opened.returncode, 0, opened.stderr)
        self.assertTrue(self.daemon.start())
        self.inject_all("after")
        for session in self.SESSIONS:
            self.assert_once_and_in_order(session, ["before", "after"])
        self.assertEqual(len(self.daemon.full_status()["queue"]["partitions"]), 19)

        self.assertEqual(self.daemon.terminate(), 0)
        self.assertTrue(self.daemon.start({"CONVERSED_ROLES": "api"}))
        self.inject_all("left over")
        self.inject_all("and more")
        self.stop_and_grow_to(23)
        for point in ("append:1", "append:30", "before_commit", "after_commit"):
            self.assertEqual(self.open_epoch(f"kafka.move.{point}").returncode, -signal.SIGKILL, point)
        opened = self.open_epoch()
        self.assertEqual(opened.returncode, 0, opened.stderr)
        self.assertTrue(self.daemon.start())
        self.inject_all("at last")
        for session in self.SESSIONS:
            self.assert_once_and_in_order(session, ["before", "after", "left over", "and more", "at last"])
        self.assertEqual(len(self.daemon.full_status()["queue"]["partitions"]), 23)


if __name__ == "__main__":
    cluster_main()
