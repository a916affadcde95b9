"""Counts the instructions of an event in each step by callgrind. The counts hardly differ between runs.

The daemon runs in valgrind, once for each step. It gets the next event when it is idle again, so each batch has one
event, and each run has the same batches. Work that a step gives to another thread does not count.

instructions.json has the counts for Debian 12's compiler and libraries, on a processor with AVX2: libraries choose other
functions for other processors. A change that makes a step dearer or cheaper by more than TOLERANCE records new counts,
so the history of that file shows the cost of each step.
"""

import json
import pathlib
import shutil
import sys

from webhook_receiver import Receiver  # bench.py adds its folder to the path

RECORDED = pathlib.Path(__file__).with_name("instructions.json")
TOLERANCE = 0.05
EVENTS = 100
SESSIONS = 10
START_SECONDS = 300
STEPS = {  # each counts its function and all that it calls
    "accept": "void conversed::api::(anonymous namespace)::accept<*",
    "append": "conversed::queue::FileLog::commit_batch*",
    "turn": "conversed::flows::run_turn*",
    "commit": "conversed::store::Committer::Impl::commit*",
}


def is_comparable():
    """Returns whether this processor is of the kind that the counts were recorded on."""
    return " avx2 " in pathlib.Path("/proc/cpuinfo").read_text()


def measure(bench):
    """Returns the count of each step, or the reason why there is none. `bench` loads its own daemon."""
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
        raise SystemExit(f"the daemon has no function {function}: correct its name in {__file__}")
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
                raise SystemExit(f"event {number} was answered {status} {answer} and not delivered")
            bench.daemon.wait_idle(START_SECONDS)
    finally:
        receiver.stop()


def under_callgrind(program, function, counts):
    """Returns a folder with a program of the same name, which runs `program` and counts while the function runs."""
    folder = counts.parent / "under-callgrind"
    folder.mkdir(exist_ok=True)
    script = folder / program.name
    script.write_text(f"#!/bin/sh\nexec valgrind -q --tool=callgrind --callgrind-out-file='{counts}' "
                      f"--toggle-collect='{function}' '{program}' \"$@\"\n")
    script.chmod(0o700)
    return folder


def total_of(counts):
    """Returns NUMBER of the line `totals: NUMBER` in callgrind's output."""
    return next(int(line.split()[1]) for line in counts.splitlines() if line.startswith("totals:"))


def show(steps):
    if isinstance(steps, str):
        return print(f"instructions were not counted: {steps}")
    print("instructions of an event: " + ", ".join(f"{number:,.0f} {step}" for step, number in steps.items()))


def record(steps):
    RECORDED.write_text(json.dumps({step: round(number) for step, number in steps.items()}, indent=2) + "\n")


def check(steps, recorded=None):
    """Returns exit code 1 if a step differs from its recorded count by more than TOLERANCE. Prints such steps."""
    recorded = recorded or json.loads(RECORDED.read_text())
    differing = [f"{step}: {steps[step]:,.0f}, recorded {recorded[step]:,} ({steps[step] / recorded[step] - 1:+.1%})"
                 for step in recorded if abs(steps[step] / recorded[step] - 1) > TOLERANCE]
    if not differing:
        return 0
    print(f"The instructions of an event differ from the recorded ones by more than {TOLERANCE:.0%}:", *differing,
          "If the change is meant to cost or save that much, run ./dev bench --instructions record and commit the file.",
          sep="\n", file=sys.stderr)
    return 1
