#!/usr/bin/env python3
"""The benchmark's counters: of this process, and in the output of perf and callgrind."""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import flame_graph  # noqa: E402
import instructions  # noqa: E402
import process_cost  # noqa: E402

BURNED_S = 0.2  # CPU time; /proc counts it in hundredths of a second

SYSTEM_CALLS = """
 Summary of events:

 log writer (16221), 27742 events, 19.1%

   syscall            calls  errors  total       min       avg       max       stddev
                                     (msec)    (msec)    (msec)    (msec)        (%)
   --------------- --------  ------ -------- --------- --------- ---------     ------
   pwrite64            6965      0   169.368     0.011     0.024    13.158     11.21%
   sendto              5000      0    92.888     0.014     0.019     0.142      0.48%


 worker 1 (16222), 14062 events, 9.7%

   syscall            calls  errors  total       min       avg       max       stddev
                                     (msec)    (msec)    (msec)    (msec)        (%)
   --------------- --------  ------ -------- --------- --------- ---------     ------
   pwrite64              35      0   204.636     0.011     0.036    14.045     13.48%
"""

ALLOCATIONS = """# started on Sun Nov 22 23:18:34 2026

worker 1-16242,300,,group:malloc,465802768,100.00,,
worker 2-16251,200,,group:malloc,341991419,100.00,,
http-16239,50,,group:malloc,259223838,100.00,,
http-16239,5,,group:realloc,259223838,100.00,,
conversed-16217,<not counted>,,group:malloc,0,100.00,,
"""

# Heads of a produce request (version 9, 300 bytes) and of a fetch request (version 11, 70 bytes), and a later part of a
# request, whose bytes are no known kind.
REQUESTS = """     rdk:broker1 (7f1) head=0x090000002c010000
     rdk:broker1 (7f1) head=0x090000002c010000
     rdk:broker-1 (7f1) head=0x0b00010046000000
     rdk:broker1 (7f1) head=0x6f6c6c65687a7a7a
     committer (7f1) head=0x090000002c010000
"""

SAMPLES = """worker 1  11
\t    5586d15 conversed::flows::Value<std::map<int, int> >::get+0x1c (/opt/bin/conversed)
\t    5586d10 run+0x2 (/opt/bin/conversed)

worker 2  12
\tffffffff81 do_syscall_64+0x5 ([kernel.kallsyms])
\t    5586d10 run+0x2 (/opt/bin/conversed)

http  13
\t     7f0001 malloc+0x1 (/usr/lib/libc.so.6)
\t     7f0002 [unknown] ([unknown])
"""


class OwnProcess(unittest.TestCase):
    def test_a_group_has_the_cpu_of_its_threads(self):
        burned, counted = threading.Event(), threading.Event()

        def burn():
            pathlib.Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("burner 1")
            while time.thread_time() < BURNED_S:
                pass
            burned.set()
            counted.wait()

        before = process_cost.snapshot(os.getpid())
        thread = threading.Thread(target=burn)
        thread.start()
        burned.wait()
        cost = process_cost.an_event(before, process_cost.snapshot(os.getpid()), 2)
        counted.set()
        thread.join()
        self.assertGreaterEqual(cost["groups"]["burner"]["cpu_us"], BURNED_S / 2 * 1e6 * 0.9)
        self.assertGreaterEqual(cost["groups"]["all"]["cpu_us"], cost["groups"]["burner"]["cpu_us"])

    def test_written_bytes_and_calls_are_counted(self):
        before = process_cost.snapshot(os.getpid())
        with tempfile.TemporaryFile(buffering=0) as file:
            for _ in range(10):
                file.write(b"x" * 1000)
        cost = process_cost.an_event(before, process_cost.snapshot(os.getpid()), 10)
        self.assertGreaterEqual(cost["written_bytes"], 1000)
        self.assertGreaterEqual(cost["write_calls"], 1)

    def test_the_cpu_of_an_ended_child_counts(self):
        before = process_cost.tree_cpu_us(os.getpid())
        subprocess.run([sys.executable, "-c", f"import time\nwhile time.process_time() < {BURNED_S}: pass"], check=True)
        self.assertGreaterEqual(process_cost.tree_cpu_us(os.getpid()) - before, BURNED_S * 1e6 * 0.9)


class Costs(unittest.TestCase):
    def test_threads_of_one_task_share_a_group(self):
        groups = {name: process_cost.group_of(name) for name in ("worker 12", "rdk:broker-1", "rdk:broker1", "log writer")}
        self.assertEqual(groups, {"worker 12": "worker", "rdk:broker-1": "rdk:broker", "rdk:broker1": "rdk:broker",
                                  "log writer": "log writer"})

    def test_each_number_has_its_own_median(self):
        costs = [{"groups": {"http": {"cpu_us": us}}, "written_bytes": 10 * us} for us in (1, 9, 2)]
        self.assertEqual(process_cost.medians(costs), {"groups": {"http": {"cpu_us": 2}}, "written_bytes": 20})

    def test_without_perf_the_counts_give_the_reason(self):
        with unittest.mock.patch.dict(os.environ, PATH="/nowhere"):
            counted = process_cost.counted_by_perf({"system_calls": process_cost.system_calls}, os.getpid(), self.fail)
        self.assertIn("linux-perf", counted["system_calls"])


class PerfOutput(unittest.TestCase):
    def test_system_calls_are_sums_over_threads(self):
        self.assertEqual(process_cost.parse_system_calls(SYSTEM_CALLS), {"pwrite64": 7000, "sendto": 5000})

    def test_allocations_are_sums_by_group(self):
        self.assertEqual(process_cost.parse_allocations(ALLOCATIONS), {"all": 555, "worker": 500, "http": 55})

    def test_the_head_tells_the_kind_of_a_broker_request(self):
        self.assertEqual(process_cost.parse_broker_requests(REQUESTS), {"produce": 2, "fetch": 1})

    def test_stacks_begin_with_the_group_and_have_no_broken_frames(self):
        run = ("run", "conversed")
        self.assertEqual(flame_graph.read_stacks(SAMPLES), collections.Counter({
            (("worker", "threads"), run, ("conversed::flows::Value::get", "conversed")): 1,
            (("worker", "threads"), run, ("do_syscall_64", "kernel")): 1,
            (("http", "threads"), ("malloc", "libc.so.6")): 1}))


class CallgrindOutput(unittest.TestCase):
    def test_the_total_has_all_threads(self):
        self.assertEqual(instructions.total_of("events: Ir\nfn=(1) run\n1 5\n\ntotals: 1234\n"), 1234)


class RecordedInstructions(unittest.TestCase):
    def test_a_step_may_be_five_percent_dearer_or_cheaper(self):
        recorded = {"accept": 1000, "turn": 2000}
        self.assertEqual(instructions.check({"accept": 1049.0, "turn": 1901.0}, recorded), 0)
        with unittest.mock.patch("sys.stderr"):
            self.assertEqual(instructions.check({"accept": 1051.0, "turn": 2000.0}, recorded), 1)
            self.assertEqual(instructions.check({"accept": 1000.0, "turn": 1899.0}, recorded), 1)

    def test_every_step_is_recorded(self):
        self.assertEqual(json.loads(instructions.RECORDED.read_text()).keys(), instructions.STEPS.keys())


class FlameGraph(unittest.TestCase):
    def test_a_frame_is_as_wide_as_its_samples(self):
        boxes, total = flame_graph.layout(flame_graph.read_stacks(SAMPLES))
        self.assertEqual(total, 3)
        widths = {frame[0]: count for frame, _, _, count in boxes}
        self.assertEqual(widths, {"worker": 2, "run": 2, "conversed::flows::Value::get": 1, "do_syscall_64": 1,
                                  "http": 1, "malloc": 1})

    def test_a_flame_graph_is_xml(self):
        stacks = collections.Counter({(("http", "threads"), ("operator<<", "conversed")): 3})
        titles = [each.text for each in xml.etree.ElementTree.fromstring(flame_graph.svg(stacks, "a & b")).iter()
                  if each.tag.endswith("title")]
        self.assertIn("operator<< (conversed): 3 samples, 100.0%", titles)

    def test_shares_are_of_all_samples(self):
        shares = flame_graph.shares(flame_graph.read_stacks(SAMPLES), flame_graph.by_group)
        self.assertEqual(shares, [("worker", 2 / 3), ("http", 1 / 3)])


if __name__ == "__main__":
    unittest.main()
