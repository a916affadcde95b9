"""Measures processes: CPU and context switches by group of threads, bytes written, system calls, allocations.

The first three come from /proc and do not slow the process. perf counts the others and slows it, so each takes its own
pass: `load(prefix)` runs the load with the prefix before its command.
"""

import collections
import os
import pathlib
import re
import shutil
import statistics
import struct
import subprocess
import tempfile

TICK_US = 1_000_000 / os.sysconf("SC_CLK_TCK")
ALLOCATING = ("malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign")
OPERATORS_NEW = ("_Znwm", "_Znam", "_ZnwmSt11align_val_t")  # jemalloc's operators new do not call its malloc
# The first part of a message to a broker begins with the request's length, kind and version.
SENDMSG = "sendmsg head=+0(+0(+16(%si))):x64"
KINDS = {0: "produce", 1: "fetch", 2: "list offsets", 3: "metadata", 8: "offset commit", 9: "offset fetch",
         12: "heartbeat"}


class Unavailable(Exception):
    """perf can't count on this machine."""


def group_of(thread):
    """Returns the group of a thread, without its number: `worker` for `worker 2`."""
    return re.sub(r"[ :/-]?\d+$", "", thread)


def stat_fields(text):
    """Returns the fields of a /proc/.../stat, the state first. The name before it may contain any character."""
    return text.rpartition(")")[2].split()


def fields_of(text):
    """Returns {name: number} of lines `NAME: NUMBER`."""
    return {name: value.split()[0] for name, _, value in (line.partition(":") for line in text.splitlines())
            if value.strip()}


def thread_work(folder):
    user, system = map(int, stat_fields((folder / "stat").read_text())[11:13])
    switches = fields_of((folder / "status").read_text())["voluntary_ctxt_switches"]
    return {"cpu_us": (user + system) * TICK_US, "system_us": system * TICK_US, "switches": int(switches)}


def written(pid):
    """Returns the bytes and calls so far. Empty if only root may read them."""
    try:
        found = fields_of(pathlib.Path(f"/proc/{pid}/io").read_text())
    except PermissionError:
        return {}
    return {"write_calls": int(found["syscw"]), "written_bytes": int(found["wchar"]),
            "disk_bytes": int(found["write_bytes"])}


def snapshot(pid):
    """Returns the work so far. The cost omits threads that end before the next snapshot."""
    threads = {}
    for folder in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            threads[folder.name] = ((folder / "comm").read_text().strip(), thread_work(folder))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return {"threads": threads, "written": written(pid)}


def an_event(before, after, events):
    """Returns the cost of an event between two snapshots: of each group of threads, of `all` threads, and bytes written."""
    groups = collections.defaultdict(collections.Counter)
    for tid, (name, work) in after["threads"].items():
        earlier = before["threads"].get(tid, (name, {}))[1]
        for group in (group_of(name), "all"):
            groups[group].update({figure: count - earlier.get(figure, 0) for figure, count in work.items()})
    return {"groups": {group: {figure: count / events for figure, count in work.items()}
                       for group, work in groups.items()},
            **{figure: (count - before["written"][figure]) / events for figure, count in after["written"].items()}}


def medians(costs):
    """Returns the median of each number in dictionaries of one shape."""
    if not isinstance(costs[0], dict):
        return statistics.median(costs)
    return {name: medians([cost[name] for cost in costs if name in cost]) for name in costs[0]}


def tree_cpu_us(pid):
    """Returns the CPU time of a process and its children, ended ones included. PostgreSQL's backends are children."""
    total = 0
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = stat_fields((folder / "stat").read_text())
        except (FileNotFoundError, ProcessLookupError):
            continue
        if folder.name == str(pid):
            total += sum(map(int, fields[11:15]))
        elif fields[1] == str(pid):
            total += sum(map(int, fields[11:13]))
    return total * TICK_US


def run_perf(*arguments):
    if not shutil.which("perf"):
        raise Unavailable("Install perf (package linux-perf).")
    done = subprocess.run(["perf", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        said = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip(" Error:\t")]
        raise Unavailable(f"perf {arguments[0]} failed: {said[0] if said else 'perf gives no reason.'} "
                          "Run as root, in a container with CAP_PERFMON and CAP_SYS_ADMIN.")
    return done.stdout


def run_under(command, load):
    """Runs the load under a command of perf. Raises Unavailable if perf can't run the command."""
    run_perf(*command[1:], "true")
    return load(command)


def library_of(pid, name):
    """Returns the file of a library that the process has loaded, or None."""
    try:
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
    except PermissionError as refused:
        raise Unavailable("Run as root: only root may read the process's maps.") from refused
    found = re.search(rf"/\S*/{name}\.so\.\d+$", maps, re.MULTILINE)
    return found and found.group()


class Probes:
    """Counts calls of a library's functions while open, by its own group of events. Needs root."""

    def __init__(self, library, *functions):
        self.group = f"conversed_bench_{os.getpid()}"
        added = [argument for function in functions
                 for argument in ("--add", f"{self.group}:{function.split()[0]}={function}")]
        run_perf("probe", "-q", "--no-demangle", "-x", library, *added)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        run_perf("probe", "-q", "-d", f"{self.group}:*")


def system_calls(pid, load):
    """Returns the count of each system call during the load, and the load's result."""
    with tempfile.NamedTemporaryFile() as out:
        result = run_under(["perf", "trace", "-s", "-m", "1024", "-o", out.name, "-p", str(pid), "--"], load)
        return parse_system_calls(pathlib.Path(out.name).read_text()), result


def parse_system_calls(summary):
    """Returns the sums of all threads' tables. A row has name, calls, errors and times."""
    calls = collections.Counter()
    for name, count in re.findall(r"^ +([a-z]\w*) +(\d+) +\d+ +[\d.]+ ", summary, re.MULTILINE):
        calls[name] += int(count)
    return dict(calls.most_common())


def allocations(pid, load):
    """Returns the allocations of each group of threads and of `all` during the load, and the load's result."""
    jemalloc = library_of(pid, "libjemalloc")
    probed = (jemalloc, *ALLOCATING, *OPERATORS_NEW) if jemalloc else (library_of(pid, "libc"), *ALLOCATING)
    with tempfile.NamedTemporaryFile() as out, Probes(*probed) as probes:
        result = run_under(["perf", "stat", "-x,", "--per-thread", "-o", out.name, "-e", f"{probes.group}:*",
                            "-p", str(pid), "--"], load)
        return parse_allocations(pathlib.Path(out.name).read_text()), result


def parse_allocations(rows):
    """Reads rows THREAD-ID,COUNT,,EVENT,..."""
    counts = collections.Counter()
    for thread, count in re.findall(r"^(.+)-\d+,(\d+),", rows, re.MULTILINE):
        counts[group_of(thread)] += int(count)
        counts["all"] += int(count)
    return {group: count for group, count in counts.most_common() if count}


def broker_requests(pids, load):
    """Returns the count of each kind of request from librdkafka's threads during the load, and the load's result."""
    with tempfile.NamedTemporaryFile() as out, Probes(library_of(pids[0], "libc"), SENDMSG) as probes:
        result = run_under(["perf", "record", "-q", "-o", out.name, "-e", f"{probes.group}:sendmsg",
                            "-p", ",".join(map(str, pids)), "--"], load)
        return parse_broker_requests(run_perf("script", "-i", out.name, "-F", "comm,trace")), result


def parse_broker_requests(rows):
    """Reads rows THREAD: (ADDRESS) head=0x..., with the first eight bytes of a message. Ignores a message that continues a
    request, since it has no head."""
    kinds = collections.Counter()
    for head in re.findall(r"^ *rdk:.* head=(0x[0-9a-f]+)", rows, re.MULTILINE):
        length, kind, version = struct.unpack(">ihh", int(head, 16).to_bytes(8, "little"))
        if length > 0 and 0 <= kind < 100 and 0 <= version < 32:
            kinds[KINDS.get(kind, "other")] += 1
    return dict(kinds.most_common())


def counted_by_perf(passes, of, load):
    """Returns the counts for an event of each pass by name, or the reason why perf can't count."""
    counted = {}
    for name, count in passes.items():
        try:
            counts, result = count(of, load)
            counted[name] = {each: number / result["delivered"] for each, number in counts.items()}
        except Unavailable as reason:
            counted[name] = str(reason)
    return counted


def show(cost):
    """Prints the cost of an event. Omits groups and calls below a hundredth of the total."""
    groups = cost["groups"]
    print(f"  {'threads':<16}{'CPU us':>9}{'system':>9}{'switches':>10}")
    for group, work in sorted(groups.items(), key=lambda item: -item[1]["cpu_us"]):
        if any(count >= groups["all"][figure] / 100 for figure, count in work.items()):
            print(f"  {group:<16}{work['cpu_us']:>9.1f}{work['system_us']:>9.1f}{work['switches']:>10.2f}")
    if "written_bytes" in cost:
        print(f"  written: {cost['written_bytes']:,.0f} bytes in {cost['write_calls']:.2f} calls, "
              f"{cost['disk_bytes']:,.0f} bytes to the disk")
    else:
        print("  written: not measured; run as root, since only root may read the daemon's /proc/PID/io")
    for name in ("system_calls", "allocations", "broker_requests"):
        if name in cost:
            show_counts(name.replace("_", " "), cost[name])


def show_counts(title, counts):
    if isinstance(counts, str):
        return print(f"  {title}: not measured: {counts}")
    total = counts.get("all", sum(counts.values()))
    listed = ", ".join(f"{number:.2f} {name}" for name, number in counts.items()
                       if name != "all" and number >= total / 100)
    print(f"  {title}: {total:.1f} ({listed})")
