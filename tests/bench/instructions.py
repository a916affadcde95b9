"""Instructions of an event in the steps that it takes, counted by callgrind: they hardly change from run to run.

The daemon runs in valgrind, once for each step, and takes one message after the other, so that each batch has one event.
Work that a step hands to another thread is not part of it.
"""

import shutil

EVENTS = 500
START_SECONDS = 300
STEPS = {  # with all that the function calls
    "accept": "conversed::api::accept_message*",
    "append": "conversed::queue::SqliteLog::commit_batch*",
    "turn": "conversed::flows::run_turn*",
    "commit": "conversed::store::Committer::Impl::commit*",
}


def measure(bench):
    """By step; the reason if they can't be counted. `bench` loads a daemon of its own, by one connection."""
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
    bench.send(EVENTS)
    daemon.terminate(timeout=START_SECONDS)
    daemon.binaries = built
    total = total_of(counts.read_text())
    if total == 0:
        raise SystemExit(f"no function of the daemon is called {function}: name another in {__file__}")
    return total / EVENTS


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
