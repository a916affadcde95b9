"""The Node `code`: scripts in processes of their own, which no neighbor, kill or script breaks."""

import contextlib
import os
import pathlib
import re
import unittest

from case import DaemonCase

BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - name: Cart
    nodes:
      - addToContext: {runs: "{{(context.runs ?? 0) + 1}}"}
      - code:
          script: |
            const total = input.data.prices.reduce((sum, price) => sum + price, 0);
            return {total, text: `${total} for ${context.runs}`};
          storeIn: context.cart
          onError: [{say: "{{input.error.code}}: {{input.error.message}}"}]
      - code: {script: "return context.cart.total * 2", storeIn: context.double}
      - say: "{{context.cart.text}}, {{context.double}}"
  - name: Loop
    nodes:
      - code: {script: "for (;;); return 1", storeIn: context.x, onError: [{say: "{{input.error.code}}"}]}
  - name: Memory
    nodes:
      - code: {script: "const a = []; for (;;) a.push(new Uint8Array(1e6)); return 1", storeIn: context.x,
               onError: [{say: "{{input.error.code}}"}]}
endpoints:
  - {name: cart, flow: Cart}
  - {name: loop, flow: Loop}
  - {name: memory, flow: Memory}
"""


def children(pid):
    """Returns the processes that the process has started, and theirs."""
    parents = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it may end meanwhile
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = [child for child, parent in parents.items() if parent == pid]
    return found + [each for child in found for each in children(child)]


def ticks(pids):
    """Returns the CPU time of the processes that live."""
    spent = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            spent += sum(map(int, pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return spent


class Scripts(DaemonCase):
    bundle = BUNDLE
    settings = "flows: {code: true, code_processes: 2}\n"

    def test_a_script_reads_values_and_its_result_goes_on(self):
        status, answer = self.say("cart", "one", data={"prices": [2, 3]})
        self.assertEqual((status, answer["text"]), (200, "5 for 1, 10"), answer)
        status, answer = self.say("cart", "one", data={})
        self.assertIn("script_error: line 1: TypeError: input.data.prices is undefined", str(answer))
        self.assertEqual(self.report["warnings"], [])

    def test_endless_and_greedy_scripts_end_and_the_daemon_goes_on(self):
        self.assertEqual(self.say("loop", "endless", "hi")[1]["text"], "timeout")
        self.assertEqual(self.say("memory", "greedy", "hi")[1]["text"], "memory")
        self.assertEqual(self.say("cart", "after", data={"prices": [1]})[1]["text"], "1 for 1, 2")

    def test_kills_lose_and_double_nothing(self):
        for point in ("turn.before_submit", "turn.after_commit", "call.after_response"):
            for times in (1, 2):
                session = f"{point} {times}"
                with self.subTest(session):
                    self.push_through_a_kill(f"{point}:{times}", "cart", session, 0, data={"prices": [2, 3]})
                    self.assertEqual(self.texts("cart", session), ["5 for 1, 10"])

    def test_a_kill_in_the_middle_of_a_script_runs_it_again_and_leaves_no_process(self):
        self.say("cart", "warm", data={"prices": [1]})
        old = children(self.daemon.process.pid)
        self.assertTrue(old)
        idle = ticks(old)
        self.assertEqual(self.push("loop", "killed", 0, text="hi"), 200)
        while ticks(old) == idle and set(old) <= set(children(self.daemon.process.pid)):  # until the script runs
            self.assertFalse(self.daemon.wait_end(0.01))
        self.daemon.kill()
        self.daemon.start()
        self.daemon.wait_idle()
        self.assertEqual(self.texts("loop", "killed"), ["timeout"])
        for pid in old:
            # A process that has ended may wait for its parent to notice it.
            status = pathlib.Path(f"/proc/{pid}/status")
            self.assertTrue(not status.exists() or re.search(r"State:\tZ", status.read_text()), pid)

    def test_a_sandbox_has_no_environment_and_no_file_of_the_daemon(self):
        self.say("cart", "warm", data={"prices": [1]})
        for pid in children(self.daemon.process.pid):
            self.assertIn("NoNewPrivs:\t1", pathlib.Path(f"/proc/{pid}/status").read_text())
            if os.geteuid() == 0:  # others may not read a process that can't be dumped
                self.assertEqual(pathlib.Path(f"/proc/{pid}/environ").read_bytes(), b"")
                files = {file.name: os.readlink(file) for file in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
                self.assertEqual(sorted(files), ["0", "1", "2"], files)
                self.assertEqual(files["2"], "/dev/null")


class Neighbors(DaemonCase):
    bundle = BUNDLE
    settings = "flows: {code: true, code_processes: 2}\n"

    def test_an_organisation_of_endless_scripts_leaves_processes_to_others(self):
        own = self.load_elsewhere("Quiet", BUNDLE)
        for number in range(60):
            self.push("loop", f"flood {number}", 0, text="hi")
        self.tokens = {**self.tokens, "quiet": own["cart"]}
        answers = [self.say("quiet", f"quiet {number}", data={"prices": [number]})[1]["text"] for number in range(5)]
        self.assertEqual(answers, [f"{number} for 1, {number * 2}" for number in range(5)])
        # Each endless script takes its second, and an organisation runs one at a time here.
        waiting = [number for number in range(60) if not self.texts("loop", f"flood {number}")]
        self.assertTrue(waiting, "the flood was over before the others were answered")


class SwitchedOff(DaemonCase):
    bundle = BUNDLE

    def test_the_node_fails_and_an_import_warns(self):
        self.assertEqual(len(self.report["warnings"]), 4, self.report["warnings"])
        self.assertIn("this daemon runs no scripts", str(self.report["warnings"][0]))
        self.assertEqual(self.say("loop", "off", "hi")[1]["text"], "code_off")
        self.assertEqual(children(self.daemon.process.pid), [])


if __name__ == "__main__":
    unittest.main()
