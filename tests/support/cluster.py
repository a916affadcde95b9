"""Runs daemons on Kafka and PostgreSQL instead of their own files: one or several on one broker and one server.

As a program: cluster.py COMMAND... runs the command with CONVERSED_TEST_KAFKA=ADDRESS and CONVERSED_TEST_POSTGRES=URL of
servers of its own, and ends with the command's exit code; 77 where these can't be had. If the variables are set,
DaemonCase uses these servers: each of its daemons gets its own topics and schema.
"""

import os
import pathlib
import subprocess
import sys
import time
import uuid

import kafka
import postgres
from daemon_process import Daemon, Failed, wait_idle

SKIPPED = 77
ALL_ROLES = ("api", "worker", "scheduler")
Unavailable = (kafka.Unavailable, postgres.Unavailable)
# The shortest time that a broker allows until other daemons take the partitions of a silent one.
SESSION_TIMEOUT_S = 6


def check_available():
    """Raises Unavailable if this machine lacks something that the servers need."""
    kafka.Broker().close()
    postgres.Server().close()


def environment():
    """The settings of a daemon that keeps its data in the servers of the environment; empty if there are none."""
    brokers, url = os.environ.get("CONVERSED_TEST_KAFKA"), os.environ.get("CONVERSED_TEST_POSTGRES")
    if not brokers or not url:
        return {}
    name = f"test_{uuid.uuid4().hex}"
    postgres.run_sql(url, f"CREATE SCHEMA {name}")
    return {"CONVERSED_QUEUE_DRIVER": "kafka", "CONVERSED_QUEUE_KAFKA_BOOTSTRAP_SERVERS": brokers,
            "CONVERSED_QUEUE_KAFKA_TOPIC_PREFIX": name, "CONVERSED_STORE_DRIVER": "postgres",
            "CONVERSED_STORE_POSTGRES_URL": f"{url}&options=-csearch_path%3D{name}"}


class Cluster:
    """A broker, a PostgreSQL server and daemons that share them. `roles` has the roles of each daemon in order; its length is the
    number of daemons. Raises Unavailable if this machine lacks something that the servers need. One thread, except for requests."""

    def __init__(self, binaries, folder, roles, settings="", environment=None, partitions=12, postgres_settings=()):
        self.folder = pathlib.Path(folder)
        self.broker = kafka.Broker()
        self.daemons = []
        try:
            self.server = postgres.Server(settings=postgres_settings)
        except BaseException:
            self.broker.close()
            raise
        shared = (
            f"queue: {{driver: kafka, partitions: {partitions}, kafka: {{bootstrap_servers: [{self.broker.address}], "
            f"delivery_timeout: 5s, properties: [session.timeout.ms={SESSION_TIMEOUT_S * 1000}]}}}}\n"
            f"store: {{driver: postgres, postgres: {{url: '{self.server.url}'}}}}\n" + settings)
        for number, own in enumerate(roles, start=1):
            name = f"daemon-{number}"
            self.daemons.append(Daemon(
                binaries, self.folder / name,
                f"{shared}cluster: {{name: {name}}}\nroles: [{', '.join(own)}]\n", environment))
            self.daemons[-1].name = name

    def prepare(self):
        """Starts the servers and makes the first organisation. The daemons can be started then."""
        self.broker.start()
        self.server.start()
        first, *others = self.daemons
        first.init()
        for other in others:
            other.take_key(first)

    def set_up(self, bundle):
        """Starts everything and imports the project. Returns the import's report; `key` is an API key."""
        self.prepare()
        for daemon in self.daemons:
            if not daemon.start():
                raise Failed(f"{daemon.name} ended at its first start; see {daemon.log_path}")
        path = self.folder / "bundle.yaml"
        path.write_text(bundle)
        entrance = self.entrance()
        report = entrance.ctl("import", str(path))
        self.key = entrance.ctl("apikey", "create", "--name", "cluster")["key"]
        return report

    def entrance(self):
        """A daemon that answers requests."""
        for daemon in self.daemons:
            if daemon.is_running() and daemon.ports.get("api"):
                return daemon
        raise Failed("no daemon takes requests")

    def partitions(self, witness):
        """The name of each partition's owner, as the daemon `witness` reports it; None for a partition without one."""
        return {each["partition"]: each["owner"] for each in witness.full_status()["queue"]["partitions"]}

    def wait_owned(self, owners, timeout=60):
        """Waits until exactly these daemons have the partitions, each some of them. The partitions of a daemon that left stay
        reserved for a moment, in case it comes back."""
        deadline = time.monotonic() + timeout
        while (found := set(self.partitions(self.entrance()).values())) != {daemon.name for daemon in owners}:
            if any(daemon.wait_end(0.05) for daemon in owners):
                raise Failed("a daemon ended while its partitions were waited for")
            if time.monotonic() > deadline:
                raise Failed(f"after {timeout} s the partitions are had by {found}")

    def lag(self):
        return self.entrance().full_status()["queue"]["lag"]

    def wait_idle(self, timeout=120):
        wait_idle([daemon for daemon in self.daemons if daemon.is_running() and daemon.ports.get("api")], timeout)

    def close(self):
        for daemon in self.daemons:
            daemon.kill()
        self.server.close()
        self.broker.close()


def main(arguments):
    try:
        broker, server = kafka.Broker(), postgres.Server()
    except Unavailable as missing:
        print(f"SKIPPED: no Kafka and PostgreSQL to test against: {missing}", file=sys.stderr)
        return SKIPPED
    try:
        broker.start()
        server.start()
        return subprocess.run(arguments, env={**os.environ, "CONVERSED_TEST_KAFKA": broker.address,
                                              "CONVERSED_TEST_POSTGRES": server.url}).returncode
    finally:
        server.close()
        broker.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
