"""Measures the cost of receipts: the same load on a daemon that keeps them, and on one that does not.

The daemons take turns, and each round begins with the other one, so that a change of the machine's speed meets both.
"""

import statistics

KINDS = ("with", "without")
WITHOUT = "retention: {receipts: 0s}\n"


def measure(make_bench, rounds, report):
    """Returns {kind: rate and CPU of an event}: the medians, and the median of the rounds' ratios. `make_bench(settings)` makes a
    bench with its own daemon. `report` gets the number of each round, its kind and its result."""
    benches = {"with": make_bench(""), "without": make_bench(WITHOUT)}
    results = {kind: [] for kind in KINDS}
    try:
        for bench in benches.values():
            bench.set_up()
            bench.end_to_end()  # not counted: caches fill
        for number in range(rounds):
            for kind in KINDS if number % 2 == 0 else KINDS[::-1]:
                results[kind].append(benches[kind].end_to_end())
                report(number, f"{kind} receipts", results[kind][-1])
    finally:
        for bench in benches.values():
            bench.daemon.kill()
    return summary(results)


def summary(results):
    rates = {kind: [result["rate"] for result in results[kind]] for kind in KINDS}
    cpu_us = {kind: [result["cost"]["groups"]["all"]["cpu_us"] for result in results[kind]] for kind in KINDS}
    return {**{kind: {"rate": statistics.median(rates[kind]), "cpu_us": statistics.median(cpu_us[kind])} for kind in KINDS},
            "of_rate": ratio(rates), "of_cpu": ratio(cpu_us)}


def ratio(of_kind):
    """Returns the median of the rounds' ratios, with to without, and the least and the greatest."""
    ratios = [kept / without for kept, without in zip(of_kind["with"], of_kind["without"])]
    return {"median": statistics.median(ratios), "least": min(ratios), "greatest": max(ratios)}


def show(figures):
    print(f"\n{'receipts':<10}{'per second':>12}{'CPU us':>9}")
    for kind in KINDS:
        print(f"{kind:<10}{figures[kind]['rate']:>12,.0f}{figures[kind]['cpu_us']:>9.1f}")
    for name, text in (("of_rate", "rate"), ("of_cpu", "CPU of an event")):
        found = figures[name]
        print(f"{text} with receipts: {found['median']:.3f} of that without (rounds {found['least']:.3f} to {found['greatest']:.3f})")
