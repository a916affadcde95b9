"""Runs one or several daemons on one Kafka broker and one PostgreSQL server instead of files.

As a program: cluster.py COMMAND... starts both servers and runs the command with CONVERSED_TEST_KAFKA=ADDRESS and
CONVERSED_TEST_POSTGRES=URL. It returns the command's exit code, or 77 if it can't start the servers. DaemonCase uses the
servers of these variables. Each of its daemons gets its own topics and schema, and with CONVERSED_TEST_SHARDS=N another
N - 1 databases, as further shards.
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
# The broker's shortest time until other daemons take the partitions of a silent daemon.
SESSION_TIMEOUT_S = 6


def check_available():
    """Raises Unavailable if this machine can't run the servers."""
    kafka.find()
    postgres.newest_programs()
    postgres.account()


def environment():
    """Returns settings for a daemon on the servers of the environment. Empty if the environment names none."""
    brokers, url = os.environ.get("CONVERSED_TEST_KAFKA"), os.environ.get("CONVERSED_TEST_POSTGRES")
    if not brokers or not url:
        return {}
    name = f"test_{uuid.uuid4().hex}"
    postgres.run_sql(url, f"CREATE SCHEMA {name}")
    shards = []
    for number in range(1, int(os.environ.get("CONVERSED_TEST_SHARDS", "1"))):
        postgres.run_sql(url, f"CREATE DATABASE {name}_{number}")
        shards.append(url.replace("/postgres?", f"/{name}_{number}?"))
    return {"CONVERSED_STORE_POSTGRES_SHARDS": ",".join(shards), "CONVERSED_QUEUE_DRIVER": "kafka", "CONVERSED_QUEUE_KAFKA_BOOTSTRAP_SERVERS": brokers,
            "CONVERSED_QUEUE_KAFKA_TOPIC_PREFIX": name, "CONVERSED_STORE_DRIVER": "postgres",
            "CONVERSED_STORE_POSTGRES_URL": f"{url}&options=-csearch_path%3D{name}"}


class Cluster:
    """A broker, PostgreSQL servers and daemons that share them. `roles` has a list of roles for each daemon, `shards` is
    the number of PostgreSQL servers. Raises Unavailable if this machine can't run the servers. One thread, except for
    requests."""

    def __init__(self, binaries, folder, roles, settings="", environment=None, partitions=12, postgres_settings=(),
                 shards=1):
        self.folder = pathlib.Path(folder)
        self.broker = kafka.Broker()
        self.daemons = []
        self.servers = []
        try:
            for _ in range(shards):
                self.servers.append(postgres.Server(settings=postgres_settings))
        except BaseException:
            self.close()
            raise
        self.server = self.servers[0]
        further = ", ".join(f"'{server.url}'" for server in self.servers[1:])
        shared = (
            f"queue: {{driver: kafka, partitions: {partitions}, kafka: {{bootstrap_servers: [{self.broker.address}], "
            f"delivery_timeout: 5s, properties: [session.timeout.ms={SESSION_TIMEOUT_S * 1000}]}}}}\n"
            f"store: {{driver: postgres, postgres: {{url: '{self.server.url}', shards: [{further}]}}}}\n" + settings)
        for number, own in enumerate(roles, start=1):
            name = f"daemon-{number}"
            self.daemons.append(Daemon(
                binaries, self.folder / name,
                f"{shared}cluster: {{name: {name}}}\nroles: [{', '.join(own)}]\n", environment))
            self.daemons[-1].name = name

    def prepare(self):
        """Starts the servers and makes the first organisation. The daemons can start afterwards."""
        self.broker.start()
        for server in self.servers:
            server.start()
        first, *others = self.daemons
        first.init()
        for other in others:
            other.take_key(first)

    def set_up(self, bundle):
        """Starts servers and daemons and imports the bundle. Returns the import's report. `key` becomes an API key."""
        self.prepare()
        for daemon in self.daemons:
            if not daemon.start():
                raise Failed(f"{daemon.name} ended at its first start; read {daemon.log_path}")
        path = self.folder / "bundle.yaml"
        path.write_text(bundle)
        entrance = self.entrance()
        report = entrance.ctl("import", str(path))
        self.key = entrance.ctl("apikey", "create", "--name", "cluster")["key"]
        return report

    def entrance(self):
        """Returns a daemon that answers requests."""
        for daemon in self.daemons:
            if daemon.is_running() and daemon.ports.get("api"):
                return daemon
        raise Failed("no daemon takes requests")

    def partitions(self, witness):
        """Returns {partition: name of its owner, or None} as the daemon `witness` reports it."""
        return {each["partition"]: each["owner"] for each in witness.full_status()["queue"]["partitions"]}

    def wait_owned(self, owners, timeout=60):
        """Waits until exactly these daemons own partitions. Those of a stopped daemon stay reserved for a moment, in case
        it returns."""
        deadline = time.monotonic() + timeout
        while (found := set(self.partitions(self.entrance()).values())) != {daemon.name for daemon in owners}:
            if any(daemon.wait_end(0.05) for daemon in owners):
                raise Failed("a daemon ended before it got partitions")
            if time.monotonic() > deadline:
                raise Failed(f"after {timeout} s the owners of the partitions are {found}")

    def program(self, *arguments, timeout=300):
        """Runs the program `conversed` with the first daemon's settings, beside the daemons."""
        first = self.daemons[0]
        return subprocess.run([first.binaries / "conversed", *arguments, "--config", first.config], capture_output=True,
                              text=True, env=first.environment, timeout=timeout)

    def lag(self):
        return self.entrance().full_status()["queue"]["lag"]

    def wait_idle(self, timeout=120):
        wait_idle([daemon for daemon in self.daemons if daemon.is_running() and daemon.ports.get("api")], timeout)

    def close(self):
        for daemon in self.daemons:
            daemon.kill()
        for server in self.servers:
            server.close()
        self.broker.close()


def main(arguments):
    try:
        broker, server = kafka.Broker(), postgres.Server()
    except Unavailable as missing:
        print(f"SKIPPED: this test needs Kafka and PostgreSQL: {missing}", file=sys.stderr)
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
