"""Measures how long the pages of the web console wait: it fills a store with sessions, receipts, outputs, deliveries and dead
letters, and asks each operation that a page uses.

Prints a row for each operation: the median and the slowest of some requests, one after the other, in milliseconds.
"""

import argparse
import contextlib
import csv
import functools
import io
import json
import pathlib
import re
import sqlite3
import string
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import postgres  # noqa: E402
from cluster import ALL_ROLES, Cluster  # noqa: E402
from daemon_process import Daemon  # noqa: E402

MOST_MS = 100
REQUESTS = 7
# Of so many sessions one has a pending delivery, a dead letter, a call or a question with a time-out, an audit entry.
ONE_IN = 10
# Of a call.
REQUEST = json.dumps({"method": "POST", "url": "https://crm.example/orders", "headers": [], "body": "x" * 2_000, "connectionId": "",
                      "timeoutMs": 10_000, "retries": 2, "idempotencyKey": "k", "toModel": False})
BUNDLE = """
conversed: 1
project: {name: Shop, locales: [en]}
flows:
  - name: Orders
    nodes:
      - id: where
        question: {text: "Where to?", storeIn: context.where}
      - say: "Heard: {{input.text}}"
endpoints:
  - {name: web, flow: Orders, output: {webhook: {url: "http://127.0.0.1:1/"}}}
"""
COLUMNS = {
    "sessions": ("id", "key", "project_id", "version", "position_epoch", "position_partition", "position_offset", "started_at",
                 "last_activity_at", "context", "flow_state", "execution", "last_output_seq", "inbox_size", "last_receipt"),
    "receipts": ("n", "steps"),
    "receipt_numbers": ("number", "event_id"),
    "plain_deliveries": ("n", "steps"),
    "outputs": ("id", "session", "seq", "output_id", "input_id", "text", "data", "trace_id", "source", "created_at", "timers_ahead"),
    "deliveries": ("session", "seq", "output_id", "endpoint_id", "withdrawable", "due_at", "attempts"),
    "dead_letters": ("id", "n", "project_id", "key", "event_id", "type", "trace_id", "value", "output_seq", "attempts", "reason",
                     "flow", "flow_version", "node", "state", "created_at"),
    "pending_calls": ("id", "session", "trace_id", "request", "due_at", "time_out", "project_id", "target", "upstream", "try_at",
                      "appended"),
    "audit": ("id", "made_at", "organisation_id", "user_id", "actor", "credential", "address", "operation", "route", "object",
              "subject_user", "subject_session", "status", "trace_id"),
}


@functools.cache
def characters_of_names():
    header = (pathlib.Path(__file__).resolve().parents[2] / "store/model/receipt_text.h").read_text()
    names = re.findall(r'"(\w+)"', re.search(r"receipt_names\{(.*?)\};", header, re.DOTALL)[1])
    return dict(zip(names, (chr(code) for code in range(ord("!"), ord("}")) if not chr(code).isdigit())))


def step_text(step):
    """Returns the text of a receipt's step (store/model/receipt_text.h)."""
    return "".join(f"{characters_of_names()[name]}:{json.dumps(value)}\x1f" for name, value in step.items())


class Rows:
    """Makes the rows of each table. The model is the session that the daemon has stored itself."""

    def __init__(self, count, key, receipt, organisation):
        self.count = count
        self.key = key  # of the model
        self.project, _, self.endpoint, _ = key.split(key[24])
        self.time = int(receipt[:9], 36) - count - 10_000  # ids begin with the time
        self.organisation = organisation
        self.now = int(time.time() * 1000)

    def key_of(self, i):
        return self.key[24].join((self.project, f"user {i}", self.endpoint, "s"))

    def input_of(self, i):
        """Returns the id of the event, one a millisecond."""
        left, time_digits = self.time + i, ""
        for _ in range(9):
            left, digit = divmod(left, 36)
            time_digits = string.digits[digit] + time_digits if digit < 10 else string.ascii_lowercase[digit - 10] + time_digits
        return f"{time_digits}{i:015}"

    def trace_of(self, i):
        return f"{i:015x}{0:017}"  # its first 15 digits are the trace_number

    def places(self, step=1):
        return range(1_000, 1_000 + self.count, step)  # the model's own rows are before

    def audit(self):
        for i in self.places(ONE_IN):
            yield (f"{i:024}", self.now, self.organisation if i % 2 else "other", "", "ann@example.com", "password", "127.0.0.1",
                   "showSession", "GET /management/sessions/show", "URLToken=x", f"user {i}", "s", 200, self.trace_of(i))

    def sessions(self):
        state = json.dumps({"v": 1, "executions": 1, "waiting": {"flow": "Orders", "at": "where"}})
        context = json.dumps({"where": "Bern", "cart": [{"name": "lamp", "price": 12.5}]})
        for i in self.places():
            yield (i, self.key_of(i), self.project, 1, 0, 0, 0, self.now - i, self.now, context,
                   state if i % 2 else "null", None, 1, 0, self.input_of(i))

    def receipts(self):
        text = step_text({
            "what": "turn", "accepted": {"type": "userMessage", "at": self.now, "daemon": "one", "text": "hello", "position": [0, 0, 7]},
            "at": self.now, "us": 250, "flow": "Orders", "version": 1, "nodes": ["where", "nodes[1]"], "nodesRun": 2,
            "changes": [{"path": "context.where", "bytes": 6, "value": '"Bern"'}], "outputs": [1, 1]})
        # Blocks of 16 ms (store/commit/receipt_blocks.h).
        for first in self.places(16):
            block = ""
            for i in range(first, min(first + 16, self.places().stop)):
                failed = step_text({"deadLetter": f"{i:024}", "reason": "it failed"}) if i % ONE_IN == 0 else ""
                block += f"\x1d{self.input_of(i)} {i} {self.now} {self.trace_of(i)}  {i}\x1e{text}{failed}"
            yield int(self.input_of(first)[:12], 36), block

    def plain_deliveries(self):
        for first in self.places(16):
            events = (self.input_of(i) for i in range(first, min(first + 16, self.places().stop)) if i % ONE_IN)
            yield int(self.input_of(first)[:12], 36), "".join(f"\x1d{event} 1 {self.now} 900 204" for event in events)

    def receipt_numbers(self):
        for i in self.places():
            yield i, self.input_of(i)

    def outputs(self):
        for i in self.places():
            yield (i, i, 1, f"{self.input_of(i)}-1", self.input_of(i), f"Heard: hello {i}", None, self.trace_of(i), "bot", self.now, 0)

    def deliveries(self):
        for i in self.places(ONE_IN):
            yield i, 1, f"{self.input_of(i)}-1", self.endpoint, 0, self.now + 3_600_000, 3

    def dead_letters(self):
        for i in self.places(ONE_IN):
            yield (f"{i:024}", i, self.project, self.key_of(i), self.input_of(i), "userMessage", self.trace_of(i),
                   json.dumps({"text": "hello"}), None, 0, f"reason {i % 50}", "", 0, "", "new" if i % 100 else "discarded",
                   self.now)

    def pending_calls(self):
        for i in self.places(ONE_IN):
            if i // ONE_IN % 2:
                yield f"{self.input_of(i)}-t1", i, self.trace_of(i), None, self.now + 3_600_000, 1, None, None, None, None, 0
            else:  # its result is in the log, so it is not made again
                yield (f"{self.input_of(i)}-c1", i, self.trace_of(i), REQUEST, None, 0, self.project, "host crm.example",
                       "crm.example", self.now, 1)


class Sqlite:
    def __init__(self, daemon):
        self.path = daemon.folder / "data" / "store.db"

    def fill(self, rows):
        with contextlib.closing(sqlite3.connect(self.path)) as store:
            store.execute("PRAGMA synchronous = OFF")
            for table, columns in COLUMNS.items():
                marks = ", ".join("?" * len(columns))
                store.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", getattr(rows, table)())
            store.commit()

    def one(self, sql):
        with contextlib.closing(sqlite3.connect(self.path)) as store:
            return store.execute(sql).fetchone()[0]


class Postgres:
    def __init__(self, server):
        self.server = server

    def fill(self, rows):
        for table, columns in COLUMNS.items():
            psql = subprocess.Popen([postgres.newest_programs() / "psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-c",
                                     f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT csv, NULL '\\N')",
                                     self.server.url],
                                    stdin=subprocess.PIPE)
            with io.TextIOWrapper(psql.stdin, encoding="utf-8", newline="") as into:
                csv.writer(into).writerows([r"\N" if value is None else value for value in row] for row in getattr(rows, table)())
            if psql.wait() != 0:
                raise SystemExit(f"{table} could not be filled")
        self.server.run_sql("VACUUM ANALYZE")

    def one(self, sql):
        return self.server.run_sql(sql)


def operations(daemon, rows, report):
    """Returns what the pages ask: [name, path, parameters]."""
    token = report["endpoints"][0]["urlToken"]
    flow, project = report["flows"][0]["_id"], report["project"]["_id"]
    middle = next(iter(rows.places())) + rows.count // 2 // 100 * 100
    names = {"URLToken": token, "userId": f"user {middle}", "sessionId": "s"}
    of = {"projectId": project}
    return [
        ["overview: status", "status", {}],
        ["overview: history", "history", {}],
        ["sessions", "sessions", of],
        ["sessions, page 2", "sessions", {**of, "after": rows.count // 2}],
        ["sessions of a user", "sessions", {**of, "userId": names["userId"]}],
        ["sessions that are busy", "sessions", {**of, "state": "busy"}],
        ["sessions of an Endpoint", "sessions", {**of, "URLToken": token}],
        ["sessions with words", "sessions", {**of, "text": "nobody says this"}],
        ["session", "sessions/show", names],
        ["session: stream", "sessions/events", names],
        ["receipt by event", f"receipts/{rows.input_of(middle)}", {}],
        ["receipt by trace", f"receipts/{rows.trace_of(middle)}", {}],
        ["receipt of no event", "receipts/000000000000000000000000", {}],
        ["deliveries", "deliveries", of],
        ["deliveries of an Endpoint", "deliveries", {**of, "URLToken": token}],
        ["deliveries that are paused", "deliveries", {**of, "state": "paused"}],
        ["deliveries that are old", "deliveries", {**of, "olderThan": "30d"}],
        ["dead letters", "deadletters", {**of, "state": "new"}],
        ["dead letters, replayed", "deadletters", {**of, "state": "replayed"}],
        ["dead letters with a reason", "deadletters", {**of, "state": "new", "reason": "no such reason"}],
        ["dead letters in groups", "deadletters/groups", {**of, "state": "new"}],
        ["dead letter", f"deadletters/{middle:024}", {}],
        ["timers", "timers", of],
        ["schedules", "schedules", of],
        ["flows", "flows", of],
        ["flow: versions", f"flows/{flow}/versions", {}],
        ["flow: graph", f"flows/{flow}/graph", {"version": 1}],
        ["endpoints", "endpoints", of],
        ["endpoint: health", f"endpoints/{report['endpoints'][0]['_id']}/health", {}],
        ["jobs", "tasks", {**of, "limit": 100, "sort": "createdAt:desc"}],
        ["users", "users", {}],
        ["keys", "apikeys", {}],
        ["audit", "audit", {}],
        ["audit of a user", "audit", {"actor": "nobody@example.com"}],
    ]


def ask(daemon, connection, path, parameters):
    query = urllib.parse.urlencode(parameters)
    began = time.perf_counter()
    status, body, _ = daemon.request("GET", f"/management/{path}{'?' + query if query else ''}", basic=True, connection=connection)
    took = (time.perf_counter() - began) * 1000
    if status not in (200, 404):
        raise SystemExit(f"{path} was answered {status} {body}")
    return took, status


def measure(options, folder, daemon, make_store):
    try:
        daemon.start()
        bundle = folder / "pages.yaml"
        bundle.write_text(BUNDLE)
        report = daemon.ctl("import", str(bundle))
        daemon.request("POST", f"/{report['endpoints'][0]['urlToken']}", {"userId": "model", "sessionId": "s", "text": "hello"})
        store = make_store(daemon)
        rows = Rows(options.rows, store.one("SELECT key FROM sessions"), store.one("SELECT last_receipt FROM sessions"),
                    store.one("SELECT id FROM organisations"))
        daemon.terminate()
        began = time.monotonic()
        store.fill(rows)
        print(f"filled in {time.monotonic() - began:.0f} s", flush=True)
        daemon.start(timeout=300)
        slow = 0
        with contextlib.closing(daemon.connect(timeout=120)) as connection:
            for name, path, parameters in operations(daemon, rows, report):
                asked = [ask(daemon, connection, path, parameters) for _ in range(REQUESTS)]
                times = [took for took, _ in asked]
                is_slow = statistics.median(times) > MOST_MS
                slow += is_slow
                print(f"{name:<30}{statistics.median(times):>9.1f}{max(times):>9.1f}  {asked[0][1]}{'  slow' if is_slow else ''}", flush=True)
        return slow
    finally:
        daemon.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default="build/release/bin", help="folder of the programs")
    parser.add_argument("--rows", type=int, default=1_000_000, help="sessions, receipts and outputs each")
    parser.add_argument("--postgres", action="store_true", help="in PostgreSQL instead of SQLite")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="conversed-pages-") as folder:
        folder = pathlib.Path(folder)
        settings = "log: {level: warn}\n"
        if not options.postgres:
            daemon = Daemon(options.bin, folder / "one", settings)
            daemon.init()
            slow = measure(options, folder, daemon, Sqlite)
        else:
            with contextlib.closing(Cluster(options.bin, folder, [ALL_ROLES], settings)) as cluster:
                cluster.prepare()
                slow = measure(options, folder, cluster.daemons[0], lambda daemon: Postgres(cluster.server))
    sys.exit(f"{slow} operations took more than {MOST_MS} ms" if slow else 0)


if __name__ == "__main__":
    main()
