"""`./dev bench --cluster`: daemons on Kafka and PostgreSQL, beside librdkafka's own producer in the same run.

  producer    records of the size that the daemon's are, by librdkafka alone, as many as it takes
  in step     the same with as many in flight as the load has connections
  accepted    injects that are durable in Kafka when they are answered, while workers run their Flow
  end to end  inject, durable, a Flow of eight Nodes, committed, POST received by a webhook

The last two by one daemon and by two. All share the cores of this machine with the servers and the load.
"""

import json
import statistics
import tempfile

import cluster
from load import BUNDLE, Tool, show_round

RESERVE = 64  # bytes of a record that are neither key nor value: lengths, deltas, its part of the batch's head


class ClusterBench(Tool):
    def __init__(self, options, folder):
        super().__init__(options)
        self.cluster = cluster.Cluster(options.bin, folder, [cluster.ALL_ROLES] * 2, "log: {level: warn}\n",
                                       self.environment)

    def set_up(self):
        report = self.cluster.set_up(BUNDLE.replace("UPSTREAM", "http://127.0.0.1:9"))
        self.take_report(report, self.cluster.key)
        self.topics = 0

    def ports(self, daemons):
        return [argument for daemon in self.cluster.daemons[:daemons] for argument in ("--port", daemon.ports["api"])]

    def use(self, daemons):
        """So many take part; the others have left."""
        for number, daemon in enumerate(self.cluster.daemons):
            if number < daemons and not daemon.is_running():
                daemon.start()
            elif number >= daemons and daemon.is_running():
                daemon.terminate()
        self.cluster.wait_owned(self.cluster.daemons[:daemons])
        self.cluster.wait_idle()

    def record_bytes(self):
        """Of one record of the daemon's in Kafka, on average: what its segments hold."""
        partitions = self.cluster.entrance().full_status()["queue"]["partitions"]
        records = sum(each["end"] for each in partitions)
        logs = (self.cluster.broker.folder / "data").glob("*.events-*/*.log")
        return sum(log.stat().st_size for log in logs) // max(1, records)

    def producer(self, in_flight):
        self.topics += 1
        return self.run_tool(
            "produce", "--brokers", self.cluster.broker.address, "--topic", f"bench-{self.topics}",
            "--bytes", max(1, self.record_bytes() - RESERVE), "--in-flight", in_flight,
            "--partitions", len(self.cluster.partitions(self.cluster.entrance())),
            "--sessions", self.options.sessions, "--seconds", self.options.seconds)

    def accepted(self, daemons):
        self.use(daemons)
        result = self.run_tool("load", *self.inject_arguments("one", self.ports(daemons)),
                               "--seconds", self.options.seconds)
        self.cluster.wait_idle()
        return result

    def end_to_end(self, daemons):
        self.use(daemons)
        result = self.run_tool("end-to-end", *self.inject_arguments("eight", self.ports(daemons)),
                               "--receive-port", self.hook_port, "--events", self.options.events)
        self.cluster.wait_idle()
        return result


def measure(options):
    kinds = {"accepted, 1": lambda each: each.accepted(1), "accepted, 2": lambda each: each.accepted(2),
             "producer": lambda each: each.producer(0),
             "in step": lambda each: each.producer(options.connections),
             "end to end, 1": lambda each: each.end_to_end(1), "end to end, 2": lambda each: each.end_to_end(2)}
    results = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory(prefix="conversed-bench-") as folder:
        measured = ClusterBench(options, folder)
        try:
            measured.set_up()
            for number in range(options.rounds):
                for kind, run in kinds.items():
                    results[kind].append(run(measured))
                    show_round(options, number, kind, results[kind][-1])
            size = measured.record_bytes()
        finally:
            measured.cluster.close()
    return results, size


def main(options):
    results, size = measure(options)
    rows = {kind: {name: statistics.median(each[name] for each in of_kind) for name in ("rate", "p50_ms", "p99_ms")}
            for kind, of_kind in results.items()}
    rate = {kind: row["rate"] for kind, row in rows.items()}
    ratios = {"accepted_of_producer": rate["accepted, 1"] / rate["producer"],
              "accepted_of_producer_in_step": rate["accepted, 1"] / rate["in step"],
              "accepted_growth": rate["accepted, 2"] / rate["accepted, 1"],
              "end_to_end_growth": rate["end to end, 2"] / rate["end to end, 1"]}
    if options.json:
        print(json.dumps({**rows, **ratios, "record_bytes": size}))
        return 0
    print(f"\n{'median of ' + str(options.rounds):<16}{'per second':>12}{'of producer':>13}{'p50 ms':>9}{'p99 ms':>9}")
    for kind, row in rows.items():
        print(f"{kind:<16}{row['rate']:>12,.0f}{row['rate'] / rate['producer']:>13.3f}{row['p50_ms']:>9.2f}"
              f"{row['p99_ms']:>9.2f}")
    print(f"records of {size} bytes; accepted by one daemon: {ratios['accepted_of_producer_in_step']:.2f} times what "
          f"librdkafka does with {options.connections} in flight")
    print(f"a second daemon on this machine: {ratios['accepted_growth']:.2f} times accepted, "
          f"{ratios['end_to_end_growth']:.2f} times end to end")
    return 0
