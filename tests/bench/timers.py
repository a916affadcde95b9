"""Measures the cost of a million pending timers, and their lateness when 5,000 fall due each second.

The benchmark writes follow-ups into the store while no daemon runs. Most of them are due in a day. The text of the others
is the time when they fall due. Lateness is the time from there to the output in the store.
"""

import json
import math
import pathlib
import sqlite3
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from daemon_process import Daemon  # noqa: E402

PENDING = 1_000_000
DUE_PER_SECOND = 5_000
SECONDS = 20
LEAD_SECONDS = 10  # at least, from the writing of the rows to the first due one
DAY_MS = 86_400_000
BUNDLE = """
conversed: 1
project: {name: Timers, locales: [en]}
flows:
  - {name: Quiet, nodes: [{wait: true}]}
endpoints:
  - {name: quiet, flow: Quiet}
"""


def memory_mib(daemon):
    """Returns the daemon's memory without mapped files, such as the store's."""
    status = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("RssAnon")).split()[1]) / 1024


def write_follow_ups(store, project, endpoint):
    """Writes one follow-up for each of a million sessions. Returns the time when the first falls due."""
    with store:
        store.executemany(
            "INSERT INTO sessions (id, key, project_id, version, position_epoch, position_partition, position_offset,"
            " started_at, last_activity_at, context, flow_state, execution, last_output_seq, inbox_size)"
            " VALUES (?, ?, ?, 1, 0, 0, -1, 1, 1, '{}', 'null', NULL, 0, 0)",
            ((n, f"{project}\x1fu{n}\x1f{endpoint}\x1fs{n}", project) for n in range(1, PENDING + 1)))
    due = DUE_PER_SECOND * SECONDS
    first_ms = int((time.time() + LEAD_SECONDS) * 1000)
    plan = {"flowId": "", "ofJourney": False}

    def rows():
        for n in range(1, PENDING + 1):
            due_at = first_ms + (n * 1000 // DUE_PER_SECOND if n <= due else DAY_MS + n)
            value = json.dumps({"text": f"due {due_at}", "data": None, "plan": plan})
            yield f"{n:024d}-f1", n, "0" * 32, due_at, value

    with store:
        store.executemany("INSERT INTO follow_ups (id, session, trace_id, due_at, value, of_journey)"
                          " VALUES (?, ?, ?, ?, ?, 0)", rows())
    # The writing may have taken longer than the lead.
    late_ms = int((time.time() + LEAD_SECONDS) * 1000) - first_ms
    with store:
        store.execute("UPDATE follow_ups SET due_at = due_at + ?, value = REPLACE(value, 'due ' || due_at,"
                      " 'due ' || (due_at + ?)) WHERE session <= ?", (late_ms, late_ms, due))
    return first_ms + late_ms


def lateness_ms(store):
    return sorted(said_at - int(text.split()[1])
                  for text, said_at in store.execute("SELECT text, created_at FROM outputs"))


def percentile(values, part):
    return values[math.ceil(part * len(values)) - 1]


def measure(binaries, folder):
    daemon = Daemon(binaries, folder, "log: {level: warn}\n")
    daemon.init()
    try:
        daemon.start()
        bundle = daemon.folder / "timers.yaml"
        bundle.write_text(BUNDLE)
        report = daemon.ctl("import", str(bundle))
        without = memory_mib(daemon)
        daemon.terminate()
        path = daemon.folder / "data" / "store.db"
        store = sqlite3.connect(path)
        first_ms = write_follow_ups(store, report["project"]["_id"], report["endpoints"][0]["_id"])
        store.close()
        daemon.start()
        waiting = threading.Event()  # never set: each wait ends by its timeout
        waiting.wait(max(0, first_ms / 1000 - time.time() - 1))
        pending = memory_mib(daemon)
        due = DUE_PER_SECOND * SECONDS
        deadline = first_ms / 1000 + 6 * SECONDS
        store = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        while (fired := store.execute("SELECT COUNT(*) FROM outputs").fetchone()[0]) < due and time.time() < deadline:
            waiting.wait(1)
        late = lateness_ms(store)
        store.close()
        if fired != due:
            raise SystemExit(f"only {fired} of {due} timers have fired")
        return {"pending": PENDING, "due_per_second": DUE_PER_SECOND, "fired": fired,
                "p50_ms": percentile(late, 0.5), "p99_ms": percentile(late, 0.99), "max_ms": late[-1],
                "bytes_a_timer": (pending - without) * 1024 * 1024 / PENDING, "memory_mib": pending,
                "memory_without_mib": without}
    finally:
        daemon.kill()
