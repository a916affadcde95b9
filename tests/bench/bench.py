#!/usr/bin/env python3
"""Measures accepted injects and end-to-end events as ratios to a bare Pistache handler in the same run.

  bare        POSTs to a Pistache handler that answers at once: the upper bound of the front end
  accepted    injects; the daemon answers when they are durable in the log, while workers run their Flow
  held        accepted, with the workers stopped: the rate of the front end and the log alone (needs root)
  end to end  inject, log, a Flow of eight Nodes, commit, POST to a webhook
  idle        end to end, each inject after the output of the last one: from the POST to the receiver
  one session end to end, with the events of one session
  alone       end to end for 50 sessions at a steady pace, with no other load
  beside      alone, while 500 other sessions wait for an upstream that takes 5 s
  first page  a page by cursor near the beginning of a list of 100,000 chunks, one client
  last page   a page by cursor near the end of that list
  timers      a million pending timers, 5,000 due each second: their lateness and their cost (timers.py)
  recovery    a daemon killed with 100,000 waiting events: the times until it is ready and answers, and its rate
              afterwards (recovery.py)
  growth      the cost of an event at 1,000 to 1,000,000 sessions, and at 100 to 10,000 outputs a session, with plots
              (growth.py). It takes some minutes, so it runs only if --only names it
  receipts    the rate and CPU of an event on a daemon that keeps receipts, and on one that does not (receipts.py). Runs
              only if --only names it
  instructions
              the instructions of accept, append, Turn and commit, one event at a time (instructions.py)

The benchmark also measures the CPU time of a Turn of eight Nodes without I/O. It should stay under 15 us.

The load generator and the webhook run on the same cores as the daemon. Each round measures all kinds. The table shows
medians.

Then it shows the daemon's cost of an event end to end (process_cost.py). CPU, voluntary context switches by group of
threads, and bytes written come from the same rounds. System calls and allocations come from separate passes, since perf
slows the daemon.

--only KIND measures only that kind. --cluster measures a cluster instead: see cluster_bench.py.
"""

import argparse
import http.server
import json
import math
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from daemon_process import Daemon  # noqa: E402
from ports import free_port  # noqa: E402

import cluster_bench  # noqa: E402
import growth  # noqa: E402
import instructions  # noqa: E402
import process_cost  # noqa: E402
import receipts  # noqa: E402
import recovery  # noqa: E402
import timers  # noqa: E402
from held_workers import held_workers  # noqa: E402
from load import BUNDLE, Tool, chosen_kinds, show_round  # noqa: E402

CHUNKS = 100_000
PAGE = 25
BESIDE = ("timers", "instructions", "recovery")  # kinds measured once, after the rounds
LONG = ("growth", "receipts")  # kinds measured only when --only names them
PLOTS = pathlib.Path("build/performance")


class SlowUpstream(http.server.ThreadingHTTPServer):
    """Answers each request after five seconds. `arrived` counts requests."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self):
        upstream = self
        self.arrived = 0
        self.never = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                upstream.arrived += 1
                upstream.never.wait(5)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Bench(Tool):
    def __init__(self, options, folder, settings=""):
        super().__init__(options)
        self.daemon = Daemon(options.bin, folder, "log: {level: warn}\n" + settings, environment=self.environment)

    def api(self):
        return "--port", self.daemon.ports["api"]

    def set_up(self):
        bundle = self.daemon.folder / "bench.yaml"
        self.upstream = SlowUpstream()
        bundle.write_text(BUNDLE.replace("UPSTREAM", f"http://127.0.0.1:{self.upstream.server_address[1]}"))
        self.daemon.init()
        self.daemon.start()
        report = self.daemon.ctl("import", str(bundle))
        self.take_report(report, self.daemon.ctl("apikey", "create", "--name", "bench")["key"])

    def import_chunks(self):
        chunks = [{"text": f"chunk {number}", "data": {"page": number}} for number in range(CHUNKS)]
        library = self.daemon.folder / "library.json"
        library.write_text(json.dumps({"conversed": 1, "project": {"name": "Library", "locales": ["en"]},
                                       "knowledgeStores": [{"name": "S", "sources": [{"name": "C", "chunks": chunks}]}]}))
        store = self.daemon.ctl("import", str(library))["knowledgeStores"][0]
        self.chunks = f"/v2.0/knowledgestores/{store['_id']}/sources/{store['sources'][0]['_id']}/chunks?limit={PAGE}"

    def bare(self):
        port = free_port()
        server = subprocess.Popen([self.tool, "bare", "--port", str(port)])
        try:
            while True:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
            return self.run_tool("load", *self.inject_arguments("one", ("--port", port)), "--seconds", self.options.seconds)
        finally:
            server.terminate()
            server.wait()

    def load(self, endpoint, seconds):
        return self.run_tool("load", *self.inject_arguments(endpoint, self.api()), "--seconds", seconds)

    def accepted(self):
        result = self.load("one", self.options.seconds)
        self.daemon.wait_idle()
        return result

    def held(self):
        with held_workers(self.daemon.process.pid):
            result = self.load("one", self.options.seconds)
        self.daemon.wait_idle()
        return result

    def send(self, events, prefix=()):
        return self.run_tool("end-to-end", *self.inject_arguments("eight", self.api()),
                             "--receive-port", self.hook_port, "--events", events, prefix=prefix)

    def deliver(self, events, prefix=()):
        result = self.send(events, prefix)
        self.daemon.wait_idle()
        return result

    def end_to_end(self, events=None):
        pid = self.daemon.process.pid
        before = process_cost.snapshot(pid)
        result = self.deliver(events or self.options.events)
        return {**result, "cost": process_cost.an_event(before, process_cost.snapshot(pid), result["delivered"])}

    def counted_by_perf(self):
        """Returns the system calls and allocations of an event. Sends fewer events, since perf slows the daemon."""
        return process_cost.counted_by_perf(
            {"system_calls": process_cost.system_calls, "allocations": process_cost.allocations},
            self.daemon.process.pid, lambda prefix: self.deliver(self.options.events // 6, prefix))

    def few(self, connections, sessions, events, *more):
        """Measures latency, or the rate of one session, with few connections, sessions or events."""
        return self.run_tool("end-to-end", *self.api(), "--key", self.key, "--url-token", self.tokens["eight"],
                             "--connections", connections, "--sessions", sessions,
                             "--receive-port", self.hook_port, "--events", events, *more)

    def fifty_sessions(self):
        return self.few(connections=4, sessions=50, events=4000)

    def beside_slow_upstream(self):
        before = self.upstream.arrived
        connection = self.daemon.connect()
        for number in range(500):
            self.daemon.request("POST", f"/inject/{self.tokens['slow']}",
                                {"userId": "slow", "sessionId": f"slow-{number}", "text": "x"},
                                {"X-API-Key": self.key}, connection)
        result = self.fifty_sessions()
        if self.upstream.arrived == before:
            raise SystemExit("no request reached the slow upstream")
        self.daemon.wait_idle()
        return result

    def page_behind(self, depth):
        """Reads one page repeatedly, by the cursor at this depth."""
        connection = self.daemon.connect()

        def get(query):
            status, page, _ = self.daemon.request("GET", f"{self.chunks}&{query}", headers={"X-API-Key": self.key},
                                                  connection=connection)
            if status != 200 or len(page["items"]) != PAGE:
                raise SystemExit(f"a page of chunks was answered {status} {page}")
            return page

        cursor = get(f"skip={depth}")["nextCursor"]
        times_ms = []
        begin = time.monotonic()
        while time.monotonic() < begin + self.options.seconds:
            asked = time.monotonic()
            get(f"next={cursor}")
            times_ms.append((time.monotonic() - asked) * 1000)
        connection.close()
        times_ms.sort()
        return {"rate": len(times_ms) / (time.monotonic() - begin), "p50_ms": statistics.median(times_ms),
                "p99_ms": times_ms[math.ceil(0.99 * len(times_ms)) - 1], "refused": 0}

    def turn_us(self):
        return self.run_tool("turn")["turn_us"]

    def memory_mib(self):
        status = pathlib.Path(f"/proc/{self.daemon.process.pid}/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) / 1024

    def kinds(self):
        """Returns {kind: its measurement} of the kinds that rounds measure."""
        return {"bare": self.bare, "accepted": self.accepted,
                **({"held": self.held} if os.geteuid() == 0 else {}), "end to end": self.end_to_end,
                "idle": lambda: self.few(1, 50, 1000, "--one-by-one"),
                "one session": lambda: self.few(connections=64, sessions=1, events=20_000),
                "alone": self.fifty_sessions, "beside": self.beside_slow_upstream,
                "first page": lambda: self.page_behind(0), "last page": lambda: self.page_behind(CHUNKS - 2 * PAGE)}


def measure_beside(options, kind):
    with tempfile.TemporaryDirectory(prefix="conversed-bench-") as folder:
        if kind == "timers":
            return timers.measure(options.bin, folder)
        def make_bench(settings=""):
            return Bench(argparse.Namespace(**vars(options)), tempfile.mkdtemp(dir=folder), settings)
        if kind == "growth":
            def show_row(row):
                print(f"growth  {row['size']:>9,}  {row['cpu_us']:.1f} us", file=sys.stderr, flush=True)
            return growth.measure(make_bench, show_row)
        if kind == "receipts":
            return receipts.measure(make_bench, options, lambda *result: show_round(options, *result))
        return (recovery if kind == "recovery" else instructions).measure(Bench(options, folder))


def measure(options, folder):
    """Returns the results of each kind, and the figures measured outside of rounds."""
    bench = Bench(options, folder)
    kinds = chosen_kinds(bench.kinds(), options, BESIDE + LONG)
    if not kinds:
        return {}, {}
    results = {kind: [] for kind in kinds}
    beside = {}
    try:
        bench.set_up()
        if kinds.keys() & {"first page", "last page"}:
            bench.import_chunks()
        for number in range(options.rounds):
            for kind, measure_kind in kinds.items():
                results[kind].append(measure_kind())
                show_round(options, number, kind, results[kind][-1])
        beside["memory_mib"] = bench.memory_mib()
        beside["turn_us"] = statistics.median(bench.turn_us() for _ in range(options.rounds))
        if "end to end" in kinds:
            costs = process_cost.medians([result["cost"] for result in results["end to end"]])
            beside["cost"] = {**costs, **bench.counted_by_perf()}
            beside["meanwhile"] = statistics.median(result["meanwhile"] for result in results["end to end"])
    finally:
        bench.daemon.kill()
    return results, beside


def show(options, summary, beside):
    if summary:
        show_rounds(options, summary, beside)
    if "timers" in beside:
        show_timers(beside["timers"])
    if "growth" in beside:
        growth.show(beside["growth"])
        growth.write_plots(beside["growth"], PLOTS)
        print(f"plots: {PLOTS}")
    if "receipts" in beside:
        receipts.show(beside["receipts"])
    if "recovery" in beside:
        recovery.show(beside["recovery"])
    if "instructions" in beside:
        instructions.show(beside["instructions"])
    if "cost" in beside:
        print("\nThe daemon's cost of an event end to end:")
        process_cost.show(beside["cost"])


def show_rounds(options, summary, beside):
    print(f"\n{'median of ' + str(options.rounds):<14}{'per second':>12}{'of bare':>10}{'p50 ms':>9}{'p99 ms':>9}")
    for kind, row in summary.items():
        of_bare = f"{row['rate'] / summary['bare']['rate']:.2f}" if "bare" in summary else "-"
        print(f"{kind:<14}{row['rate']:>12,.0f}{of_bare:>10}{row['p50_ms']:>9.2f}{row['p99_ms']:>9.2f}")
    if {"alone", "beside"} <= summary.keys():
        ratio = summary["beside"]["p99_ms"] / summary["alone"]["p99_ms"]
        print(f"p99 of 50 sessions beside 500 that wait for a slow upstream: {ratio:.2f} times the p99 alone")
    if {"first page", "last page"} <= summary.keys():
        pages = summary["last page"]["p50_ms"] / summary["first page"]["p50_ms"]
        print(f"p50 of the last page of {CHUNKS:,} chunks: {pages:.2f} times the p50 of the first page")
    if "meanwhile" in beside:
        print(f"end to end, while events are accepted: {beside['meanwhile']:.2f} of as many are delivered")
    print(f"CPU of a Turn of eight Nodes: {beside['turn_us']:.1f} us")
    print(f"peak memory of the daemon: {beside['memory_mib']:.0f} MiB")


def show_timers(of_timers):
    print(f"{of_timers['pending']:,} pending timers, {of_timers['due_per_second']:,} due a second: late by p50 "
          f"{of_timers['p50_ms']} ms, p99 {of_timers['p99_ms']} ms, at most {of_timers['max_ms']} ms; "
          f"memory {of_timers['memory_mib']:.0f} MiB, without timers {of_timers['memory_without_mib']:.0f} MiB")


def hold_instructions(options):
    if not instructions.is_comparable():
        print("instructions were not counted: the recorded counts are those of a processor with AVX2")
        return 0 if options.instructions == "check" else 3
    steps = measure_beside(options, "instructions")
    instructions.show(steps)
    if isinstance(steps, str):
        return 3
    return instructions.record(steps) if options.instructions == "record" else instructions.check(steps)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the binaries, built for release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5, help="duration of each load")
    parser.add_argument("--events", type=int, default=60_000, help="number of events in each end-to-end load")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--only", action="append", metavar="KIND", help="measure only this kind; can be repeated")
    parser.add_argument("--json", action="store_true", help="print the medians as JSON")
    parser.add_argument("--cluster", action="store_true", help="measure daemons on Kafka and PostgreSQL")
    parser.add_argument("--servers", type=int, default=1, help="PostgreSQL servers of the cluster")
    parser.add_argument("--instructions", choices=("check", "record"),
                        help="only count instructions, and compare them with instructions.json or record them there")
    options = parser.parse_args()
    if options.instructions:
        return hold_instructions(options)
    if options.cluster:
        return cluster_bench.main(options)
    with tempfile.TemporaryDirectory(prefix="conversed-bench-") as folder:
        results, beside = measure(options, folder)
    beside |= {kind: measure_beside(options, kind) for kind in BESIDE + LONG if kind in (options.only or BESIDE)}
    summary = {kind: {name: statistics.median(result[name] for result in of_kind) for name in ("rate", "p50_ms", "p99_ms")}
               for kind, of_kind in results.items()}
    if options.json:
        print(json.dumps({**summary, **beside}))
    else:
        show(options, summary, beside)
    return 0


if __name__ == "__main__":
    sys.exit(main())
