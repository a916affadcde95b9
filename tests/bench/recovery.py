"""Kills a daemon with at least 100,000 waiting events, and measures when it is ready, answers, and is idle again.

held_workers.py stops the workers while the daemon accepts the events, so all of them wait in the log.
"""

import os
import signal
import time

from held_workers import held_workers

WAITING = 100_000
LOAD_SECONDS = 2


def measure(bench):
    """Returns seconds from the start, and events a second, or the reason for no result. `bench` loads its own daemon."""
    if os.geteuid() != 0:
        return "Run as root: only root may stop the daemon's worker threads."
    daemon = bench.daemon
    try:
        bench.set_up()
        daemon.wait_idle()
        with held_workers(daemon.process.pid):
            waiting = 0
            while waiting < WAITING:
                waiting += bench.load("one", LOAD_SECONDS)["answered"]
            daemon.signal(signal.SIGKILL)
        daemon.kill()
        started = time.monotonic()
        daemon.start()
        ready_s = time.monotonic() - started
        status, answer, _ = daemon.request("POST", f"/{bench.tokens['one']}",
                                           {"userId": "new", "sessionId": "new", "text": "Hello"})
        answered_s = time.monotonic() - started
        if status != 200:
            raise SystemExit(f"a new session's message was answered {status} {answer} after {answered_s:.1f} s")
        daemon.wait_idle(timeout=300)
        return {"waiting": waiting, "ready_s": ready_s, "answered_s": answered_s,
                "rate": waiting / (time.monotonic() - started)}
    finally:
        daemon.kill()


def show(figures):
    if isinstance(figures, str):
        return print(f"recovery was not measured: {figures}")
    print(f"killed with {figures['waiting']:,} waiting events: ready after {figures['ready_s']:.2f} s, answered a new session "
          f"after {figures['answered_s']:.2f} s, processed {figures['rate']:,.0f} events a second")
