"""Runs an Apache Kafka broker for tests: one KRaft node on free ports, with its data in a temporary folder.

As a program: kafka.py [--jars FOLDER] COMMAND... starts a broker and runs the command with CONVERSED_TEST_KAFKA=host:port.
It returns the command's exit code, or 77 if Java or the broker's jars are missing.

kafka.py [--jars FOLDER] --archive archives the broker's classes beside the jars. With the archive a broker starts in half
the processor time. Without it, or with other jars, the broker starts as well.
"""

import contextlib
import os
import pathlib
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

from ports import free_port

SKIPPED = 77
JARS = pathlib.Path(__file__).resolve().parents[2] / "build" / "tools" / "kafka" / "jars"
# Kafka takes any 16 bytes in URL-safe base 64.
CLUSTER_ID = "Y29udmVyc2VkLXRlc3RzMA"
HEAP = "-Xmx384m"


class Unavailable(Exception):
    """This machine has no Java, or no jars of the broker."""


class Failed(Exception):
    """The broker failed."""


def find(jars=None):
    """Returns the folder of the broker's jars, and java."""
    jars = pathlib.Path(jars or os.environ.get("CONVERSED_TEST_KAFKA_JARS") or JARS)
    java = shutil.which("java")
    if not java or not any(jars.glob("kafka_2.13-*.jar")):
        raise Unavailable("java is missing" if not java else f"{jars} has no jars")
    return jars, java


class Broker:
    """One broker. It can be killed and started again with the same data and address.

    With `users`, a dict of passwords, it has a second listener for them: `secure_address`, by SASL PLAIN over TLS. The
    file `authority` has the certificate.
    """

    def __init__(self, jars=None, settings=None, users=None):
        self.jars, self.java = find(jars)
        self.archive = self.jars.parent / "classes.jsa"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="conversed-kafka-"))
        self.port, controller = free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.process = None
        controller_address = f"CONTROLLER://127.0.0.1:{controller}"
        properties = {
            "process.roles": "broker,controller", "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.address},{controller_address}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": self.folder / "data",
            "offsets.topic.replication.factor": 1, "offsets.topic.num.partitions": 1,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.replication.factor": 1, "transaction.state.log.min.isr": 1,
            # A killed broker can register again only after this timeout.
            "broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500,
            "group.initial.rebalance.delay.ms": 0, "auto.create.topics.enable": "false",
            "log.cleaner.dedupe.buffer.size": 2097152,
            **(self.secure(users, controller_address) if users else {}), **(settings or {})}
        self.config = self.folder / "server.properties"
        self.config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        try:
            self.format()
        except BaseException:
            self.close()
            raise

    def format(self):
        """Formats the broker's data. Each new broker has the same, so Java makes it once for these jars."""
        data, kept = self.folder / "data", self.jars.parent / "formatted"
        if kept.exists():
            shutil.copytree(kept, data)
            return
        self.run_java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self.config))
        with contextlib.suppress(OSError), tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            os.rename(shutil.copytree(data, f"{folder}/data"), kept)  # fails if another test was first

    def advertise(self, address):
        """Makes the broker tell its clients the address of a proxy, from the next start on."""
        config = self.config.read_text()
        self.config.write_text(config.replace(f"advertised.listeners=PLAINTEXT://{self.address}",
                                              f"advertised.listeners=PLAINTEXT://{address}"))

    def secure(self, users, controller):
        """Makes the certificate, and returns the properties of the second listener."""
        port = free_port()
        self.secure_address = f"127.0.0.1:{port}"
        self.authority = self.folder / "authority.pem"
        key = self.folder / "key.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
             "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", self.authority],
            check=True, capture_output=True, timeout=60)
        keystore = self.folder / "keystore.pem"
        keystore.write_text(key.read_text() + self.authority.read_text())
        known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
        return {
            "listeners": f"PLAINTEXT://{self.address},SECURE://{self.secure_address},{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address},SECURE://{self.secure_address}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secure.plain.sasl.jaas.config":
                f"org.apache.kafka.common.security.plain.PlainLoginModule required {known};",
            "listener.name.secure.ssl.keystore.type": "PEM",
            "listener.name.secure.ssl.keystore.location": keystore}

    def command(self, name, *arguments):
        log4j = self.folder / "log4j.properties"
        if not log4j.exists():
            log4j.write_text("log4j.rootLogger=WARN, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
                             "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
                             "log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n\n")
        archive = [f"-XX:SharedArchiveFile={self.archive}"] if self.archive.exists() else []
        return [self.java, HEAP, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *archive,
                f"-Dlog4j.configuration=file:{log4j}", "-cp", f"{self.jars}/*", name, *arguments]

    def run_java(self, name, *arguments):
        done = subprocess.run(self.command(name, *arguments), capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise Failed(f"{name}: {done.stdout}{done.stderr}")

    def start(self, timeout=120, options=()):
        """Starts the broker, with these options of Java, and waits until it answers requests."""
        self.log = open(self.folder / "broker.log", "ab")
        java, *rest = self.command("kafka.Kafka", str(self.config))
        self.process = subprocess.Popen([java, *options, *rest], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log)
        self.ended = os.pidfd_open(self.process.pid)
        deadline = time.monotonic() + timeout
        while not self.answers():
            if select.select([self.ended], [], [], 0.05)[0] or time.monotonic() > deadline:
                raise Failed((self.folder / "broker.log").read_text()[-4000:])
        return self

    def answers(self):
        """Returns whether the answer to a Metadata request (no topic) has a broker."""
        try:
            return struct.unpack(">i", self.ask(3, struct.pack(">i", 0), timeout=5)[:4])[0] > 0
        except OSError:
            return False

    def add_partitions(self, topic, count):
        """Adds partitions to a topic up to `count` (CreatePartitions)."""
        name = topic.encode()
        wish = struct.pack(f">ih{len(name)}siiib", 1, len(name), name, count, -1, 30_000, 0)
        answer = self.ask(37, wish, timeout=60)
        error = struct.unpack(">h", answer[10 + len(name):12 + len(name)])[0]  # after throttle time, array length and name
        if error:
            raise Failed(f"{topic} did not get {count} partitions: error {error}, {answer[12 + len(name):]}")

    def delete_topic(self, topic):
        """Deletes a topic (DeleteTopics). Waits for the broker, since the controller answers first."""
        name = topic.encode()
        answer = self.ask(20, struct.pack(f">ih{len(name)}si", 1, len(name), name, 30_000), timeout=60, version=1)
        error = struct.unpack(">h", answer[10 + len(name):12 + len(name)])[0]  # after throttle time, array length and name
        if error:
            raise Failed(f"{topic} was not deleted: error {error}")
        until = time.monotonic() + 60
        while self.has_topic(topic):
            if time.monotonic() > until:
                raise Failed(f"the broker still has {topic}")

    def has_topic(self, topic):
        """Returns whether the answer to a Metadata request (all topics) names the topic."""
        name = topic.encode()
        return struct.pack(">h", len(name)) + name in self.ask(3, struct.pack(">i", 0), timeout=60)

    def ask(self, api, body, timeout, version=0):
        """Sends one request of Kafka's protocol. Returns the answer without its header."""
        request = struct.pack(">hhih4s", api, version, 1, 4, b"test") + body
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            size = struct.unpack(">i", self.read(connection, 4))[0]
            return self.read(connection, size)[4:]

    @staticmethod
    def read(connection, size):
        data = b""
        while len(data) < size:
            some = connection.recv(size - len(data))
            if not some:
                raise ConnectionError("the broker closed the connection")
            data += some
        return data

    def archive_classes(self):
        """Runs the broker once. Its end writes the archive of the classes that it has loaded."""
        made = self.archive.with_suffix(".new")
        self.start(options=[f"-XX:ArchiveClassesAtExit={made}"])
        self.process.terminate()
        self.process.wait(timeout=120)
        made.replace(self.archive)

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        """Kills the broker at once, as a crash does. Keeps its data."""
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()
            os.close(self.ended)
            self.log.close()
            self.process = None

    def close(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def main(arguments):
    jars = None
    if arguments[:1] == ["--jars"]:
        jars, arguments = arguments[1], arguments[2:]
    try:
        broker = Broker(jars)
    except Unavailable as missing:
        print(f"SKIPPED: this test needs Kafka: {missing}; run tests/tools/fetch kafka", file=sys.stderr)
        return SKIPPED
    try:
        if arguments == ["--archive"]:
            broker.archive_classes()
            return 0
        broker.start()
        return subprocess.run(arguments, env={**os.environ, "CONVERSED_TEST_KAFKA": broker.address}).returncode
    finally:
        broker.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
