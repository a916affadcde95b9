#!/usr/bin/env python3
"""`./dev profile` makes a flame graph of the daemon under the end-to-end load of `./dev bench`.

The graph has a column for each group of threads. perf follows frame pointers. Debian's libraries have none, so callers
of functions of SQLite, curl and libc may be missing.
"""

import argparse
import pathlib
import sys
import tempfile

import flame_graph
import process_cost
from bench import Bench

FUNCTIONS = 30
FUNCTIONS_OF_A_GROUP = 6


def record(options, folder):
    """Returns the output of `perf script` for the load."""
    bench = Bench(options, folder)
    data = pathlib.Path(folder) / "perf.data"
    try:
        bench.set_up()
        # A load without perf fills the daemon's caches.
        bench.deliver(options.events // 6)
        process_cost.run_under(
            ["perf", "record", "-q", "-g", "-F", str(options.frequency), "-o", str(data),
             "-p", str(bench.daemon.process.pid), "--"], lambda prefix: bench.deliver(options.events, prefix))
    finally:
        bench.daemon.kill()
    return process_cost.run_perf("script", "-i", data, "--no-inline", "-F", "comm,tid,ip,sym,dso")


def listed(rows):
    return ", ".join(f"{share:.1%} {name}" for name, share in rows if share >= 0.005)


def show(stacks):
    print(f"code of: {listed(flame_graph.shares(stacks, flame_graph.by_file))}")
    print("functions, by their own samples:")
    for (function, file), share in flame_graph.shares(stacks, flame_graph.by_function)[:FUNCTIONS]:
        print(f"  {share:6.1%}  {function[:100]} ({file})")
    for group, share in flame_graph.shares(stacks, flame_graph.by_group):
        if share < 0.01:
            continue
        own = {stack: count for stack, count in stacks.items() if stack[0][0] == group}
        functions = flame_graph.shares(own, flame_graph.by_function)[:FUNCTIONS_OF_A_GROUP]
        print(f"{group}, {share:.1%} of all samples:")
        print(f"  code of: {listed(flame_graph.shares(own, flame_graph.by_file))}")
        print(f"  functions: {listed([(function[:60], part) for (function, _), part in functions])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the binaries, built for release")
    parser.add_argument("--out", default="build/profile.svg", help="file of the flame graph")
    parser.add_argument("--events", type=int, default=60_000)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--frequency", type=int, default=997, help="samples a second on each CPU")
    options = parser.parse_args()
    out = pathlib.Path(options.out).resolve()
    with tempfile.TemporaryDirectory(prefix="conversed-profile-") as folder:
        try:
            stacks = flame_graph.read_stacks(record(options, folder))
        except process_cost.Unavailable as reason:
            raise SystemExit(f"no profile: {reason}")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(flame_graph.svg(stacks, f"conversed, {options.events:,} events end to end"))
    show(stacks)
    print(f"flame graph: {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
