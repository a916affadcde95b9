"""Instructions of an event in the steps that it takes, counted by callgrind: they hardly change from run to run.

The daemon runs in valgrind, once for each step, and takes a message when it has done all that the one before caused. So each
batch holds one event, and each run has the same batches. Work that a step hands to another thread is not part of it.

instructions.json keeps the counts of Debian 12's compiler and libraries. A change that makes a step dearer, or cheaper, by
more than TOLERANCE records them anew, so that the history of that file shows what each step has cost.
"""

import json
import pathlib
import shutil
import sys

from webhook_receiver import Receiver  # bench.py says where

RECORDED = pathlib.Path(__file__).with_name("instructions.json")
TOLERANCE = 0.05
EVENTS = 100
SESSIONS = 10
START_SECONDS = 300
STEPS = {  # with all that the function calls
    "accept": "void conversed::api::(anonymous namespace)::accept<*",
    "append": "conversed::queue::SqliteLog::commit_batch*",
    "turn": "conversed::flows::run_turn*",
    "commit": "conversed::store::Committer::Impl::commit*",
}


def measure(bench):
    """By step; the reason if they can't be counted. `bench` loads a daemon of its own."""
    if not shutil.which("valgrind"):
        return "Install valgrind (package valgrind)."
    try:
        bench.set_up()
        bench.daemon.terminate()
        return {step: count(bench, function) for step, function in STEPS.items()}
    finally:
        bench.daemon.kill()


def count(bench, function):
    daemon, built = bench.daemon, bench.daemon.binaries
    counts = daemon.folder / "callgrind.out"
    counts.unlink(missing_ok=True)
    daemon.binaries = under_callgrind(built.resolve() / "conversed", function, counts)
    if not daemon.start(timeout=START_SECONDS):
        raise SystemExit(f"the daemon ended in valgrind:\n{daemon.log_path.read_text()[-2000:]}")
    send_one_by_one(bench)
    daemon.terminate(timeout=START_SECONDS)
    daemon.binaries = built
    total = total_of(counts.read_text())
    if total == 0:
        raise SystemExit(f"no function of the daemon is called {function}: name another in {__file__}")
    return total / EVENTS


def send_one_by_one(bench):
    receiver = Receiver(bench.secret, bench.hook_port)
    try:
        for number in range(EVENTS):
            body = {"userId": "u", "sessionId": f"s{number % SESSIONS}", "text": "Where is my parcel?",
                    "data": {"t": number, "event": "shipped", "orderId": "A-1017"}}
            status, answer, _ = bench.daemon.request("POST", f"/inject/{bench.tokens['eight']}", body,
                                                     {"X-API-Key": bench.key})
            if status != 200 or not receiver.wait_for(lambda deliveries: len(deliveries) > number, START_SECONDS):
                raise SystemExit(f"event {number} was answered {status} {answer}, and is not delivered")
            bench.daemon.wait_idle(START_SECONDS)
    finally:
        receiver.stop()


def under_callgrind(program, function, counts):
    """A folder with a program that runs this one and counts while the function runs."""
    folder = counts.parent / "under-callgrind"
    folder.mkdir(exist_ok=True)
    script = folder / program.name
    script.write_text(f"#!/bin/sh\nexec valgrind -q --tool=callgrind --callgrind-out-file='{counts}' "
                      f"--toggle-collect='{function}' '{program}' \"$@\"\n")
    script.chmod(0o700)
    return folder


def total_of(counts):
    """The line `totals: NUMBER` of callgrind's output."""
    return next(int(line.split()[1]) for line in counts.splitlines() if line.startswith("totals:"))


def show(steps):
    if isinstance(steps, str):
        return print(f"instructions: not counted: {steps}")
    print("instructions of an event by itself: " + ", ".join(f"{number:,.0f} {step}" for step, number in steps.items()))


def record(steps):
    RECORDED.write_text(json.dumps({step: round(number) for step, number in steps.items()}, indent=2) + "\n")


def check(steps, recorded=None):
    """The exit code: 1 if a step differs from its recorded count by more than TOLERANCE. Says which, and what to do."""
    recorded = recorded or json.loads(RECORDED.read_text())
    differing = [f"{step}: {steps[step]:,.0f}, recorded are {recorded[step]:,} ({steps[step] / recorded[step] - 1:+.1%})"
                 for step in recorded if abs(steps[step] / recorded[step] - 1) > TOLERANCE]
    if not differing:
        return 0
    print(f"Instructions of an event differ by more than {TOLERANCE:.0%}:", *differing,
          "If the change is meant to cost or save that much: ./dev bench --instructions record, and commit the file.",
          sep="\n", file=sys.stderr)
    return 1
