"""Shared by the tests of a daemon on Kafka: starts a broker, and counts effects."""

import http.client
import sys
import unittest

from case import DaemonCase
import cluster  # case.py adds its folder to the path
import kafka
import postgres
from kafka import SKIPPED, Broker

BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - name: Echo
    nodes:
      - say: "{{input.text}}"
  - name: Lookup
    nodes:
      - httpRequest: {method: POST, url: "UPSTREAM/orders", body: {id: "{{input.text}}"}, storeIn: context.order,
                      timeout: 60s}
      - say: "{{input.text}}: {{context.order.state}}"
endpoints:
  - {name: echo, flow: Echo, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
  - {name: lookup, flow: Lookup}
"""
NO_ANSWER = (OSError, http.client.HTTPException)


class KafkaCase(DaemonCase):
    bundle = BUNDLE
    store_settings = ""

    @classmethod
    def setUpClass(cls):
        cls.broker = cls.make_broker()
        cls.addClassCleanup(cls.broker.close)
        cls.broker.start()
        cls.settings = cls.kafka_settings(cls.broker.address) + cls.store_settings
        super().setUpClass()

    @classmethod
    def make_broker(cls):
        return Broker()

    @staticmethod
    def kafka_settings(address, properties=()):
        return (f"queue: {{driver: kafka, kafka: {{bootstrap_servers: [{address}], delivery_timeout: 4s, "
                f"properties: [{', '.join(properties)}]}}}}\n")

    def ready(self, daemon=None):
        daemon = daemon or self.daemon
        return daemon.get_status(daemon.ports["admin"], "/readyz") == 200

    def wait_ready(self, wanted):
        while self.ready() != wanted:
            self.assertFalse(self.daemon.wait_end(0.05), "the daemon ended")

    def assert_once_and_in_order(self, session, accepted, maybe=()):
        """Checks that each event of `accepted` has its effects once and in order, and each event of `maybe` at most once."""
        self.daemon.wait_idle()
        texts = self.texts("echo", session)
        self.assertEqual(len(texts), len(set(texts)), "an event has its effects twice")
        self.assertEqual([text for text in texts if text in accepted], list(accepted))
        self.assertLessEqual(set(texts), set(accepted) | set(maybe))

    def inject_until_it_ends(self, session, accepted, maybe, enough):
        """Injects events one after the other until an inject gets no answer. Sets `enough` after 100 events."""
        connection = self.daemon.connect()
        for number in range(100_000):
            text = str(number)
            try:
                status, _, _ = self.inject("echo", session, connection=connection, text=text)
            except NO_ANSWER:
                maybe.append(text)
                return
            (accepted if status == 200 else maybe).append(text)
            if number == 100:
                enough.set()


class PostgresCase(KafkaCase):
    """The store is PostgreSQL. `server_settings` configure the server, `cluster_settings` the daemon's part in a cluster."""

    server_settings = ()
    cluster_settings = ""

    @classmethod
    def setUpClass(cls):
        cls.server = cls.make_server(settings=cls.server_settings)
        cls.store_settings = f"store: {{driver: postgres, postgres: {{url: '{cls.store_url()}'}}}}\n" + cls.cluster_settings
        super().setUpClass()

    @classmethod
    def make_server(cls, primary=None, settings=()):
        server = postgres.Server(primary, settings)
        cls.addClassCleanup(server.close)
        return server.start()

    @classmethod
    def store_url(cls):
        return cls.server.url


def skip(missing):
    print(f"SKIPPED: {missing}", file=sys.stderr)
    sys.exit(SKIPPED)


def main():
    try:
        kafka.find()
    except kafka.Unavailable as missing:
        skip(f"no Kafka to test against: {missing} (tests/tools/fetch kafka)")
    unittest.main()


def cluster_main():
    """Runs tests that need Kafka and PostgreSQL."""
    try:
        cluster.check_available()
    except cluster.Unavailable as missing:
        skip(f"no Kafka and PostgreSQL to test against: {missing} (tests/tools/fetch kafka; package postgresql)")
    unittest.main()
