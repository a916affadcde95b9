"""Measures the cost of an event while the store grows: by the number of sessions, and by the outputs of a session.

In the first part each session has one event before the measured load, which goes to all sessions. In the second part ten
sessions have all events. They reach the size halfway through the measured load.
"""

import pathlib

import process_cost

SESSIONS = (1_000, 10_000, 100_000, 1_000_000)
SESSIONS_MEASURED = 20_000  # events
OUTPUTS = (100, 1_000, 10_000)
FEW_SESSIONS = 10
OUTPUTS_MEASURED = 2 * OUTPUTS[0] * FEW_SESSIONS  # events
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 320, 70, 50, 30


def measure(make_bench, report):
    """Returns the rows of each part. `make_bench` makes a bench with its own daemon. `report` gets each row."""
    def all_sessions(size, sent):
        return size, size

    def few_sessions(size, sent):
        return size * FEW_SESSIONS - OUTPUTS_MEASURED // 2 - sent, FEW_SESSIONS

    return {"sessions": grow(make_bench(), SESSIONS, all_sessions, SESSIONS_MEASURED, report),
            "outputs": grow(make_bench(), OUTPUTS, few_sessions, OUTPUTS_MEASURED, report)}


def grow(bench, sizes, fill_of, measured, report):
    """Measures at each size. `fill_of(size, events so far)` returns the number of events that fill the store, and the
    number of their sessions."""
    rows, sent = [], 0
    try:
        bench.set_up()
        for size in sizes:
            fill, bench.options.sessions = fill_of(size, sent)
            if fill > 0:
                bench.deliver(fill)
            pid = bench.daemon.process.pid
            before = process_cost.snapshot(pid)
            result = bench.deliver(measured)
            cost = process_cost.an_event(before, process_cost.snapshot(pid), measured)
            sent += fill + measured
            rows.append({"size": size, "cpu_us": cost["groups"]["all"]["cpu_us"], "rate": result["rate"],
                         "written_bytes": cost.get("written_bytes", 0), "memory_mib": own_memory_mib(pid),
                         "store_mib": store_bytes(bench.daemon.folder / "data") / 2**20})
            report(rows[-1])
    finally:
        bench.daemon.kill()
    return rows


def own_memory_mib(pid):
    """Returns the daemon's memory without mapped files."""
    return int(process_cost.fields_of(pathlib.Path(f"/proc/{pid}/status").read_text())["RssAnon"]) / 1024


def store_bytes(folder):
    return sum(file.stat().st_size for file in folder.glob("store.db*"))


def show(parts):
    for part, rows in parts.items():
        name = "sessions" if part == "sessions" else "outputs a session"
        print(f"\n{name:>18}{'CPU us':>9}{'of first':>10}{'per second':>12}{'bytes':>9}{'memory MiB':>12}{'store MiB':>11}")
        for row in rows:
            print(f"{row['size']:>18,}{row['cpu_us']:>9.1f}{row['cpu_us'] / rows[0]['cpu_us']:>10.2f}{row['rate']:>12,.0f}"
                  f"{row['written_bytes']:>9,.0f}{row['memory_mib']:>12.0f}{row['store_mib']:>11,.0f}")


def plot(rows, title):
    """Draws the CPU of an event by the size as SVG. The sizes have equal distances."""
    top = max(row["cpu_us"] for row in rows) * 1.2
    across = (WIDTH - LEFT - 30) / (len(rows) - 1)

    def place(number, cpu_us):
        return LEFT + number * across, HEIGHT - BOTTOM - cpu_us / top * (HEIGHT - BOTTOM - TOP)

    points = [place(number, row["cpu_us"]) for number, row in enumerate(rows)]
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
             'font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
             f'<text x="{LEFT}" y="18" font-size="14">{title}</text>',
             f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - 20}" fill="none" stroke="#888"/>',
             f'<text x="8" y="{TOP + 10}">CPU, us</text>']
    lines.append(f'<polyline fill="none" stroke="#2f6f4f" stroke-width="2" '
                 f'points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>')
    for (x, y), row in zip(points, rows):
        lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#2f6f4f"/>',
                  f'<text x="{x:.1f}" y="{y - 8:.1f}" text-anchor="middle">{row["cpu_us"]:.0f}</text>',
                  f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{row["size"]:,}</text>']
    return "\n".join([*lines, "</svg>"]) + "\n"


def write_plots(parts, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "growth_sessions.svg").write_text(plot(parts["sessions"], "An event, by the number of sessions"))
    (folder / "growth_outputs.svg").write_text(plot(parts["outputs"], "An event, by the outputs of its session"))
