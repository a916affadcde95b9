"""Cuts the network between a daemon and its broker, or its database, in every way, under load.

After each cut
  - an inject with a 2xx has had its effects once, and any other inject at most once,
  - each client has got an answer within the time-outs of the settings,
  - /readyz has answered 503, and answers 200 again without a restart.
"""

import os
import pathlib
import sys

from kafka_case import KafkaCase, cluster_main

import kafka
import postgres
from campaign import Client, Habits, Session, check_effects
from network import Cut, Proxy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fault"))
from kill_campaign import BUNDLE  # noqa: E402

TURN_TIMEOUT = 8
DELIVERY_TIMEOUT = 3
STORE_TIMEOUT = 2
# The longest time of an answer. A request may wait for the store and then for the log. Each server has 2 s more to refuse by
# itself. A busy machine takes up to twice as long.
PATIENCE = 2 * (TURN_TIMEOUT + DELIVERY_TIMEOUT + 2 * (STORE_TIMEOUT + 2))
CUTS = os.environ.get("CONVERSED_TEST_CUTS", " ".join(cut.name for cut in Cut)).split()


class CutsCase(KafkaCase):
    bundle = BUNDLE

    @classmethod
    def make_broker(cls):
        broker = kafka.Broker()
        cls.to_broker = Proxy(("127.0.0.1", broker.port))
        cls.addClassCleanup(cls.to_broker.stop)
        broker.advertise(f"127.0.0.1:{cls.to_broker.port}")
        return broker

    @classmethod
    def setUpClass(cls):
        cls.server = postgres.Server()
        cls.addClassCleanup(cls.server.close)
        cls.server.start()
        cls.to_database = Proxy(cls.server.socket)
        cls.addClassCleanup(cls.to_database.stop)
        cls.broker = cls.make_broker()
        cls.addClassCleanup(cls.broker.close)
        cls.broker.start()
        url = f"postgresql://{postgres.SUPERUSER}@127.0.0.1:{cls.to_database.port}/postgres"
        cls.settings = (f"api: {{turn_timeout: {TURN_TIMEOUT}s}}\n"
                        f"queue: {{driver: kafka, kafka: {{bootstrap_servers: ['127.0.0.1:{cls.to_broker.port}'], "
                        f"delivery_timeout: {DELIVERY_TIMEOUT}s}}}}\n"
                        f"store: {{driver: postgres, postgres: {{url: '{url}', timeout: {STORE_TIMEOUT}s}}}}\n")
        super(KafkaCase, cls).setUpClass()
        cls.url_token = cls.report["endpoints"][0]["urlToken"]
        cls.next_session = 0

    def clients(self, count):
        type(self).next_session += count
        sessions = [Session(number) for number in range(self.next_session - count, self.next_session)]
        clients = [Client([self.daemon], [session], self.url_token, self.key, session.session_id,
                          Habits(keyed=0.8, messages=0.2, patience=PATIENCE)) for session in sessions]
        for client in clients:
            client.start()
        self.addCleanup(lambda: [client.halted.set() for client in clients])
        return sessions, clients

    def wait_accepted(self, sessions, more):
        """Waits until each session has `more` further accepted events."""
        goals = [len(session.accepted) + more for session in sessions]
        while any(len(session.accepted) < goal for session, goal in zip(sessions, goals)):
            self.assertFalse(self.daemon.wait_end(0.05), "the daemon ended")

    def read_all(self):
        """Checks that routes that only read answer in time, with data or with an error."""
        session = "userId=user-0&sessionId=session-0"
        for path, headers in ((f"/{self.url_token}/outputs?{session}", {}),
                              ("/v2.0/tasks", {"X-API-Key": self.key}),
                              ("/v2.0/tasks", {"X-API-Key": "ak_unknown_0000000000000000000000000000"})):
            connection = self.daemon.connect(timeout=PATIENCE)
            try:
                status, body, _ = self.daemon.request("GET", path, headers=headers, connection=connection)
            finally:
                connection.close()
            self.assertIn(status, (200, 401, 503, 504), body)

    def cut(self, proxy, how):
        sessions, clients = self.clients(4)
        self.wait_accepted(sessions, 3)
        proxy.cut(how)
        try:
            self.wait_ready(False)
            self.read_all()
        finally:
            proxy.heal()
        self.wait_ready(True)
        self.wait_accepted(sessions, 3)
        for client in clients:
            client.halted.set()
        for client in clients:
            client.join()
        for client, session in zip(clients, sessions):
            client.resolve(session)
            self.assertEqual(client.wrong, [])
            self.assertEqual(client.too_late, 0, f"no answer within {PATIENCE} s: {client.statuses}")
            self.assertLessEqual(set(client.statuses), {200, 202, 502, 503, 504}, client.statuses)
        self.daemon.wait_idle()
        found, _ = check_effects(self.daemon, self.url_token, sessions, self.receiver.deliveries)
        self.assertEqual(found, [])

    def each_cut(self, proxy):
        for how in CUTS:
            with self.subTest(how):
                self.cut(proxy, Cut[how])


class Broker(CutsCase):
    def test_no_effect_is_lost_or_doubled_by_cuts_between_daemon_and_broker(self):
        self.each_cut(self.to_broker)


class Database(CutsCase):
    def test_no_effect_is_lost_or_doubled_by_cuts_between_daemon_and_database(self):
        self.each_cut(self.to_database)


if __name__ == "__main__":
    cluster_main()
