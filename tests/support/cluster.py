"""Runs tests of daemons on Kafka and PostgreSQL instead of their own files.

As a program: cluster.py COMMAND... runs the command with CONVERSED_TEST_KAFKA=ADDRESS and CONVERSED_TEST_POSTGRES=URL of
servers of its own, and ends with the command's exit code; 77 where these can't be had. DaemonCase takes them, if they
are there: each of its daemons gets topics and a schema to itself.
"""

import os
import subprocess
import sys
import uuid

import kafka
import postgres

SKIPPED = 77


def environment():
    """What makes a new daemon keep all in the servers that are named; empty if there are none."""
    brokers, url = os.environ.get("CONVERSED_TEST_KAFKA"), os.environ.get("CONVERSED_TEST_POSTGRES")
    if not brokers or not url:
        return {}
    name = f"test_{uuid.uuid4().hex}"
    postgres.run_sql(url, f"CREATE SCHEMA {name}")
    return {"CONVERSED_QUEUE_DRIVER": "kafka", "CONVERSED_QUEUE_KAFKA_BOOTSTRAP_SERVERS": brokers,
            "CONVERSED_QUEUE_KAFKA_TOPIC_PREFIX": name, "CONVERSED_STORE_DRIVER": "postgres",
            "CONVERSED_STORE_POSTGRES_URL": f"{url}&options=-csearch_path%3D{name}"}


def main(arguments):
    try:
        broker, server = kafka.Broker(), postgres.Server()
    except (kafka.Unavailable, postgres.Unavailable) as missing:
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
