"""Measures the cost of receipts: the same load on a daemon that keeps them, and on one that does not.

Each round starts two daemons. They get short loads in turn, so that a change of the machine's speed meets both. Two equal processes
differ by some percent for as long as they live, so several rounds are needed.
"""

import math
import statistics

KINDS = ("with", "without")
WITHOUT = "retention: {receipts: 0s}\n"
LOADS = 6  # of each daemon in a round


def measure(make_bench, options, report):
    """Returns {kind: rate and CPU of an event}, the medians of the rounds, and the ratios of the rounds. `make_bench(settings)` makes
    a bench with its own daemon. `report` gets the number of each round, its kind and its result."""
    settings = dict(zip(KINDS, ("", WITHOUT)))
    results = {kind: [] for kind in KINDS}
    for number in range(options.rounds):
        benches = {kind: make_bench(settings[kind]) for kind in KINDS}
        try:
            for kind, result in measure_round(benches, max(1, options.events // LOADS)).items():
                results[kind].append(result)
                report(number, f"{kind} receipts", result)
        finally:
            for bench in benches.values():
                bench.daemon.kill()
    return summary(results)


def measure_round(benches, events):
    """Returns {kind: its result over all loads}."""
    for bench in benches.values():
        bench.set_up()
        bench.end_to_end()  # not counted: caches fill
    loads = {kind: [] for kind in KINDS}
    for number in range(LOADS):
        for kind in KINDS if number % 2 == 0 else KINDS[::-1]:
            loads[kind].append(benches[kind].end_to_end(events))
    return {kind: total(loads[kind]) for kind in KINDS}


def total(loads):
    """Returns the result of loads with the same number of events."""
    return {"rate": statistics.harmonic_mean([load["rate"] for load in loads]),
            "cpu_us": statistics.mean(load["cost"]["groups"]["all"]["cpu_us"] for load in loads),
            **{figure: statistics.median(load[figure] for load in loads) for figure in ("p50_ms", "p99_ms", "refused")}}


def summary(results):
    figures = {kind: {figure: [result[figure] for result in results[kind]] for figure in ("rate", "cpu_us")} for kind in KINDS}
    return {**{kind: {figure: statistics.median(values) for figure, values in figures[kind].items()} for kind in KINDS},
            "of_rate": ratio({kind: figures[kind]["rate"] for kind in KINDS}),
            "of_cpu": ratio({kind: figures[kind]["cpu_us"] for kind in KINDS})}


def ratio(of_kind):
    """Returns the mean of the rounds' ratios, with to without, and its standard error."""
    ratios = [kept / without for kept, without in zip(of_kind["with"], of_kind["without"])]
    error = statistics.stdev(ratios) / math.sqrt(len(ratios)) if len(ratios) > 1 else math.nan
    return {"mean": statistics.mean(ratios), "error": error, "ratios": ratios}


def show(figures):
    print(f"\n{'receipts':<10}{'per second':>12}{'CPU us':>9}")
    for kind in KINDS:
        print(f"{kind:<10}{figures[kind]['rate']:>12,.0f}{figures[kind]['cpu_us']:>9.1f}")
    for name, text in (("of_rate", "rate"), ("of_cpu", "CPU of an event")):
        found = figures[name]
        print(f"{text} with receipts: {found['mean']:.3f} of that without (standard error {found['error']:.3f})")
