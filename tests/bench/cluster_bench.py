"""`./dev bench --cluster` compares daemons on Kafka and PostgreSQL with librdkafka's producer in the same run.

  producer    records as large as the daemon's, sent by librdkafka alone, as fast as it can
  in step     producer, with at most as many records in flight as the load has connections
  accepted    injects; the daemon answers when they are durable in Kafka, while workers run their Flow
  end to end  inject, log, a Flow of eight Nodes, commit, POST to a webhook

The last two run with one daemon and with two. Daemons, servers and load share the cores of this machine.

With `--servers N` the store has N PostgreSQL servers, which share the sessions.

Then the benchmark shows the cost of an event end to end. The CPU of the daemons, PostgreSQL and the broker comes from
the same rounds. A pass with one daemon counts transactions, statements and requests to the broker. It also counts those
of an idle daemon in a second.
"""

import collections
import json
import statistics
import subprocess
import tempfile
import threading

import cluster
import postgres
import process_cost
from load import BUNDLE, Tool, chosen_kinds, show_round

STATEMENTS = "pg_stat_statements"
# An idle backend adds its transactions to the database's count after at most 10 s.
FLUSH_SECONDS = 11
RESERVE = 64  # bytes of a record besides key and value: lengths, deltas, its share of the batch's head


class ClusterBench(Tool):
    def __init__(self, options, folder):
        super().__init__(options)
        self.has_statements = postgres.has_library(STATEMENTS)
        self.cluster = cluster.Cluster(
            options.bin, folder, [cluster.ALL_ROLES] * 2, "log: {level: warn}\n", self.environment,
            postgres_settings=[f"shared_preload_libraries={STATEMENTS}"] if self.has_statements else [],
            shards=options.servers)

    def set_up(self):
        report = self.cluster.set_up(BUNDLE.replace("UPSTREAM", "http://127.0.0.1:9"))
        self.take_report(report, self.cluster.key)
        # The partitions of a daemon that stops while the group takes it in would stay reserved for it.
        self.cluster.wait_owned(self.cluster.daemons)
        if self.has_statements:
            for server in self.cluster.servers:
                server.run_sql(f"CREATE EXTENSION {STATEMENTS}")
        self.topics = 0

    def ports(self, daemons):
        return [argument for daemon in self.cluster.daemons[:daemons] for argument in ("--port", daemon.ports["api"])]

    def use(self, daemons):
        """Starts the first `daemons` daemons and stops the others."""
        for number, daemon in enumerate(self.cluster.daemons):
            if number < daemons and not daemon.is_running():
                daemon.start()
            elif number >= daemons and daemon.is_running():
                daemon.terminate()
        self.cluster.wait_owned(self.cluster.daemons[:daemons])
        self.cluster.wait_idle()

    def record_bytes(self):
        """Returns the average size of a daemon's record in Kafka, by the size of the segments."""
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

    def deliver(self, daemons, events, prefix=()):
        result = self.run_tool("end-to-end", *self.inject_arguments("eight", self.ports(daemons)),
                               "--receive-port", self.hook_port, "--events", events, prefix=prefix)
        self.cluster.wait_idle()
        return result

    def cpu_us(self):
        servers = self.cluster.servers
        names = ["PostgreSQL"] if len(servers) == 1 else [f"PostgreSQL {number}" for number in range(len(servers))]
        return {"daemons": sum(process_cost.tree_cpu_us(daemon.process.pid)
                               for daemon in self.cluster.daemons if daemon.is_running()),
                **{name: process_cost.tree_cpu_us(server.process.pid) for name, server in zip(names, servers)},
                "broker": process_cost.tree_cpu_us(self.cluster.broker.process.pid)}

    def end_to_end(self, daemons):
        self.use(daemons)
        pid = self.cluster.daemons[0].process.pid
        cpu_us, threads = self.cpu_us(), process_cost.snapshot(pid)
        result = self.deliver(daemons, self.options.events)
        events = result["delivered"]
        cost = process_cost.an_event(threads, process_cost.snapshot(pid), events) if daemons == 1 else {}
        return {**result, "cost": {
            **cost, "cpu_us": {name: (us - cpu_us[name]) / events for name, us in self.cpu_us().items()}}}

    def asked_of_postgres(self):
        """Returns the transactions and statements so far."""
        # PostgreSQL does not tell when all backends have added their counts.
        threading.Event().wait(FLUSH_SECONDS)
        asked = collections.Counter()
        for server in self.cluster.servers:
            asked["transactions"] += int(server.run_sql(
                "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"))
            if not self.has_statements:
                continue
            rows = json.loads(server.run_sql(f"SELECT json_agg(json_build_array(query, calls)) FROM {STATEMENTS}"))
            for query, calls in rows:
                asked[" ".join(query.split())[:90]] += calls
                asked["statements"] += calls
        return asked

    def counts(self):
        """Returns the requests of one daemon to PostgreSQL and the broker: for an event, and while idle in a second."""
        self.use(1)
        pids = [self.cluster.daemons[0].process.pid]
        asked = [self.asked_of_postgres()]
        events = self.deliver(1, self.options.events)["delivered"]
        asked += [self.asked_of_postgres(), self.asked_of_postgres()]
        idle = asked[2] - asked[1]

        def rest(prefix):
            subprocess.run([*prefix, "sleep", str(FLUSH_SECONDS)])
            return {"delivered": FLUSH_SECONDS}

        load = {"broker_requests": process_cost.broker_requests}
        return {
            "postgres": {name: count / events for name, count in (asked[1] - asked[0] - idle).most_common()},
            **process_cost.counted_by_perf(load, pids, lambda prefix: self.deliver(1, self.options.events // 3, prefix)),
            "idle": {"postgres": {name: idle[name] / FLUSH_SECONDS for name in ("transactions", "statements")},
                     **process_cost.counted_by_perf(load, pids, rest)}}


def measure(options):
    """Returns the results of each kind, the size of a record, and the result of `counts`."""
    kinds = {"accepted, 1": lambda each: each.accepted(1), "accepted, 2": lambda each: each.accepted(2),
             "producer": lambda each: each.producer(0),
             "in step": lambda each: each.producer(options.connections),
             "end to end, 1": lambda each: each.end_to_end(1), "end to end, 2": lambda each: each.end_to_end(2)}
    kinds = chosen_kinds(kinds, options)
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
            counts = measured.counts() if "end to end, 1" in kinds else {}
        finally:
            measured.cluster.close()
    return results, size, counts


def main(options):
    results, size, counts = measure(options)
    rows = {kind: {name: statistics.median(each[name] for each in of_kind) for name in ("rate", "p50_ms", "p99_ms")}
            for kind, of_kind in results.items()}
    costs = {kind: process_cost.medians([each["cost"] for each in of_kind])
             for kind, of_kind in results.items() if "cost" in of_kind[0]}
    ratios = {name: rows[kind]["rate"] / rows[other]["rate"]
              for name, kind, other in (("accepted_of_producer", "accepted, 1", "producer"),
                                        ("accepted_of_producer_in_step", "accepted, 1", "in step"),
                                        ("accepted_growth", "accepted, 2", "accepted, 1"),
                                        ("end_to_end_growth", "end to end, 2", "end to end, 1"))
              if {kind, other} <= rows.keys()}
    if options.json:
        print(json.dumps({**rows, **ratios, "record_bytes": size, "cost": costs, "counts": counts}))
        return 0
    print(f"\n{'median of ' + str(options.rounds):<16}{'per second':>12}{'of producer':>13}{'p50 ms':>9}{'p99 ms':>9}")
    for kind, row in rows.items():
        of_producer = f"{row['rate'] / rows['producer']['rate']:.3f}" if "producer" in rows else "-"
        print(f"{kind:<16}{row['rate']:>12,.0f}{of_producer:>13}{row['p50_ms']:>9.2f}{row['p99_ms']:>9.2f}")
    print(f"records of {size} bytes")
    for name, meaning in (
            ("accepted_of_producer_in_step",
             f"accepted by one daemon, as a ratio to librdkafka with {options.connections} in flight"),
            ("accepted_growth", "accepted by two daemons on this machine, as a ratio to one"),
            ("end_to_end_growth", "end to end by two daemons on this machine, as a ratio to one")):
        if name in ratios:
            print(f"{meaning}: {ratios[name]:.2f}")
    show_costs(costs, counts)
    return 0


def show_costs(costs, counts):
    for kind, cost in costs.items():
        shares = ", ".join(f"{us:.0f} {name}" for name, us in cost["cpu_us"].items())
        print(f"\nCPU us an event, {kind}: {sum(cost['cpu_us'].values()):.0f} ({shares})")
        if "groups" in cost:
            print("by the daemon:")
            process_cost.show(cost)
    if not counts:
        return
    asked = counts["postgres"]
    statements = f"{asked['statements']:.2f} statements" if "statements" in asked else f"(needs {STATEMENTS}) statements"
    print(f"\nAn event takes {asked.get('transactions', 0):.2f} transactions of PostgreSQL and {statements}:")
    for query, count in asked.items():
        if count >= 0.02 and query not in ("transactions", "statements"):
            print(f"  {count:6.2f}  {query}")
    print("and of the broker:")
    process_cost.show_counts("broker requests", counts["broker_requests"])
    print("An idle daemon takes in a second:")
    of_postgres = counts["idle"]["postgres"]
    print(f"  PostgreSQL: {of_postgres['transactions']:.2f} transactions, {of_postgres['statements']:.2f} statements")
    process_cost.show_counts("broker requests", counts["idle"]["broker_requests"])
