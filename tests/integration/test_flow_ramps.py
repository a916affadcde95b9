"""`conversectl import --hold` and `flow ramp`: the share of sessions, kills in the middle of a ramp, and a ramp that is taken back."""

import pathlib
import subprocess
import unittest

from case import BIN, DaemonCase

BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - name: Orders
    nodes:
      - addToContext: {n: "{{(context.n ?? 0) + 1}}"}
      - if: input.text == 'bad'
        then: [{forEach: context.lines, item: context.line, do: [{say: never}]}]
      - say: "VERSION {{context.n}}"
endpoints:
  - {name: shop, flow: Orders}
"""
MASK = (1 << 64) - 1


def draw(*parts):
    """The draw from [0, 1) that flows/turn/share.cc makes of these names."""
    seed = 0xcbf29ce484222325
    for byte in "".join(part + "\n" for part in parts).encode():
        seed = (seed ^ byte) * 0x100000001b3 & MASK
    mixed = (seed + 0x9e3779b97f4a7c15) & MASK
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9 & MASK
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb & MASK
    return ((mixed ^ mixed >> 31) >> 11) * 2.0 ** -53


class FlowRamps(DaemonCase):
    bundle = BUNDLE.replace("VERSION", "old")

    def setUp(self):
        self.pushed = {}
        self.project = self.report["project"]["_id"]
        self.endpoint = self.report["endpoints"][0]["_id"]
        self.flow = self.report["flows"][0]["_id"]

    def hold(self, text):
        """Imports a version with this text and holds it. Returns its number."""
        path = pathlib.Path(self.folder.name) / "held.yaml"
        path.write_text(BUNDLE.replace("VERSION", text))
        return self.daemon.ctl("import", "--hold", str(path))["flows"][0]["version"]

    def print(self, *arguments, code=0):
        """Runs conversectl without --json. Returns what it prints."""
        done = subprocess.run(
            [pathlib.Path(BIN) / "conversectl", "--url", f"http://127.0.0.1:{self.daemon.ports['api']}", *arguments],
            capture_output=True, text=True, env=self.daemon.environment, timeout=60)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout + done.stderr

    def ramp(self):
        return self.daemon.manage("GET", f"flows/{self.flow}/versions")["ramp"]

    def is_ramped(self, session, share):
        return draw(self.project, self.endpoint, f"user of {session}", session, self.flow, "ramp") * 100 < share

    def tell(self, session, text="x"):
        self.pushed[session] = self.pushed.get(session, 0) + 1
        self.assertEqual(self.push("shop", session, self.pushed[session], text=text), 200)

    def expect(self, session, version):
        """Expects that the last output is the version's, and that each input has counted once."""
        self.assertEqual(self.texts("shop", session)[-1], f"{version} {self.pushed[session]}")

    def ended(self):
        """Waits for the end of the ramp. Returns it."""
        for _ in range(1200):
            if (ramp := self.ramp())["endedAt"]:
                return ramp
            self.assertFalse(self.daemon.wait_end(0.05), "the daemon ended")
        self.fail("the ramp did not end")

    def test_the_share_runs_the_version_through_kills(self):
        held = self.hold("new")
        sessions = [f"kept {n}" for n in range(40)]
        self.tell(sessions[0])
        self.daemon.wait_idle()
        self.expect(sessions[0], "old")
        self.assertIn("30 % of the sessions", self.print("flow", "ramp", "Orders", str(held), "30%"))
        for share, point in ((30, "turn.before_submit"), (30, "store.before_commit"), (60, "store.after_commit"),
                             (60, "turn.after_commit")):
            with self.subTest(share=share, point=point):
                self.daemon.ctl("flow", "ramp", "Orders", str(held), f"{share}%")
                for session in sessions:
                    self.tell(session)
                self.daemon.wait_idle()
                ramped = [session for session in sessions if self.is_ramped(session, share)]
                self.assertTrue(0 < len(ramped) < len(sessions), ramped)
                for session in ramped[0], next(each for each in sessions if each not in ramped):
                    self.pushed[session] += 1
                    self.push_through_a_kill(point, "shop", session, self.pushed[session], text="x")
                for session in sessions:
                    self.expect(session, "new" if session in ramped else "old")
                ramp = self.ramp()
                self.assertEqual(ramp["turns"] + ramp["stableTurns"], sum(self.pushed.values()) - 1, "each Turn counts once")
                self.assertEqual(ramp["failures"] + ramp["stableFailures"], 0)
        shares = [item["share"] for item in self.daemon.manage("GET", f"flows/{self.flow}/versions")["items"]]
        self.assertEqual(sorted(shares)[-2:], [40, 60])
        self.assertIn("is in a ramp with version", self.print("flow", "rollback", "Orders", "1", code=1))
        self.assertIn("all sessions run it", self.print("flow", "ramp", "Orders", str(held), "100%"))
        for session in sessions:
            self.tell(session)
        self.daemon.wait_idle()
        for session in sessions:
            self.expect(session, "new")
        self.daemon.ctl("flow", "rollback", "Orders", "1")

    def test_a_version_that_fails_is_taken_back(self):
        held = self.hold("faulty")
        sessions = [f"back {n}" for n in range(100)]
        self.daemon.ctl("flow", "ramp", "Orders", str(held), "50%", "--max-errors", "10%")
        ramped = [session for session in sessions if self.is_ramped(session, 50)]
        other = next(session for session in sessions if session not in ramped)
        self.tell(other, "bad")
        for session in ramped[:19]:
            self.tell(session, "bad" if session in ramped[:3] else "x")
        self.daemon.wait_idle()
        ramp = self.ramp()
        self.assertEqual((ramp["turns"], ramp["failures"], ramp["stableFailures"]), (19, 3, 1))
        self.assertIsNone(ramp["endedAt"], "a ramp has 20 Turns before it is judged")
        # The daemon dies after the commit of the Turn that passes the bound. The next one takes the ramp back.
        self.push_through_a_kill("turn.after_commit", "shop", ramped[19], 1, text="bad")
        ramp = self.ended()
        self.assertEqual((ramp["ending"], ramp["turns"], ramp["failures"]), ("errors", 20, 4))
        text = self.print("flow", "versions", "Orders")
        self.assertIn("was taken back, because more than 10 % of its Turns failed", text)
        self.assertIn(f"4 of 20 of version {held}", text)
        log = self.daemon.log_path.read_text()
        self.assertEqual(log.count("a ramp was taken back"), 1)
        entries = self.daemon.manage("GET", "audit?operation=stopFlowRamp")["items"]
        self.assertEqual([entry["object"] for entry in entries if f"version={held}," in entry["object"]],
                         [f"flowId={self.flow}, name=Orders, version={held}, reason=4 of 20 Turns have failed"])
        self.daemon.terminate()
        self.daemon.start()
        self.assertEqual(self.ramp(), ramp, "the end outlives a restart")
        for session in ramped[5:10]:
            self.tell(session)
        self.daemon.wait_idle()
        for session in ramped[5:10]:
            self.expect(session, "old")

    def test_a_stop_with_a_version_stops_no_ramp_of_another_one(self):
        held = self.hold("stopped")
        self.daemon.ctl("flow", "ramp", "Orders", str(held), "10%")
        self.assertIn(f"is in a ramp with version {held}", self.print("flow", "ramp", "Orders", "1", "--stop", code=1))
        self.assertIsNone(self.ramp()["endedAt"])
        self.assertIn(f"The ramp of version {held} was stopped", self.print("flow", "ramp", "Orders", str(held), "--stop"))
        self.assertEqual(self.ramp()["ending"], "stopped")

    def test_wrong_ramps_are_refused(self):
        held = self.hold("refused")
        self.assertIn("VERSION and the SHARE", self.print("flow", "ramp", "Orders", code=2))
        self.assertIn("whole percent", self.print("flow", "ramp", "Orders", str(held), "1.5%", code=2))
        self.assertIn("whole percent", self.print("flow", "ramp", "Orders", str(held), "10", "--max-errors", "x", code=2))
        self.assertIn("give --stop only the FLOW, and the VERSION", self.print("flow", "ramp", "Orders", str(held), "10%", "--stop", code=2))
        self.assertIn("is in no ramp", self.print("flow", "ramp", "Orders", "--stop", code=1))
        for command in (("ramp", "Orders", "999", "10%"), ("rollback", "Orders", "999"), ("diff", "Orders", "1", "999")):
            self.assertIn("the Flow 'Orders' has no version 999; `conversectl flow versions Orders` lists them",
                          self.print("flow", *command, code=1))

    def test_the_end_of_a_ramp_is_shown_while_its_version_is_in_effect(self):
        held = self.hold("shown")
        self.daemon.ctl("flow", "ramp", "Orders", str(held), "10%")
        self.assertIn("with --stop takes the version back, with 100% gives it", self.print("flow", "ramp", "Orders", "1", "20%", code=1))
        self.daemon.ctl("flow", "ramp", "Orders", str(held), "100%")
        self.assertIn(f"The ramp of version {held} is finished", self.print("flow", "versions", "Orders"))
        self.daemon.ctl("flow", "rollback", "Orders", "1")
        self.assertNotIn("The ramp of", self.print("flow", "versions", "Orders"))


if __name__ == "__main__":
    unittest.main()
