#!/usr/bin/env python3
"""Kills the daemon with -9 at each named point of a job that replays dead letters by a filter.

The job ends done. Each event has its effects once, in the order of its session.
"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
from case import DaemonCase  # noqa: E402
from daemon_process import Failed  # noqa: E402

BUNDLE = """
conversed: 1
project: {{name: Tests, locales: [en]}}
flows: [{{name: Echo, nodes: [{nodes}]}}]
endpoints: [{{name: echo, flow: Echo}}]
"""
GOOD = 'say: "{{input.text}}"'
BAD = '{id: again, addToContext: {n: 1}}, {goTo: again}'
POINTS = (["job.after_lease", "job.after_appends", "job.before_step:1", "job.before_step:2", "job.before_step:3"]
          + [f"job.after_step:{n}" for n in range(1, 3)]
          + [f"store.{when}_commit:{n}" for when in ("before", "after") for n in range(1, 9)])
# Beyond the end of the job.
MAY_BE_MISSED = "store."
EVENTS = [str(n) for n in range(6)]
SESSIONS = ("ann", "bob")


class BulkKills(DaemonCase):
    bundle = BUNDLE.format(nodes="{" + GOOD + "}")

    def import_flow(self, nodes):
        path = pathlib.Path(self.folder.name) / "project.yaml"
        path.write_text(BUNDLE.format(nodes=nodes))
        self.import_file(path)

    def letters(self, state):
        return self.daemon.manage("GET", f"deadletters?state={state}&limit=100")["items"]

    def bury(self, point):
        """Makes dead letters of two sessions, and then mends the Flow."""
        self.import_flow(BAD)
        for text in EVENTS:
            for session in SESSIONS:
                self.assertEqual(self.inject("echo", f"{session} {point}", text=text)[0], 200)
        self.daemon.wait_idle()
        self.assertEqual(len(self.letters("new")), len(EVENTS) * len(SESSIONS))
        self.import_flow("{" + GOOD + "}")

    def test_each_event_is_replayed_once_and_in_order_after_a_kill_at_each_point(self):
        for point in POINTS:
            with self.subTest(point):
                self.bury(point)
                self.daemon.kill()
                if self.daemon.start({"CONVERSED_TEST_KILL_AT": point}):
                    try:
                        self.daemon.ctl("deadletters", "replay", "--all", "--background")
                    except Failed:
                        pass  # the daemon died during the request
                    if not point.startswith(MAY_BE_MISSED):
                        self.assertTrue(self.daemon.wait_end(60), "the daemon did not reach the point")
                self.daemon.kill()
                self.daemon.start()
                for job in self.daemon.manage("GET", "tasks?limit=100")["items"]:
                    if job["status"] != "done":
                        self.daemon.ctl("jobs", "watch", job["_id"])  # fails unless the job ends done
                self.daemon.wait_idle()
                if self.letters("new"):  # the kill came before the job was stored
                    self.daemon.ctl("deadletters", "replay", "--all")
                    self.daemon.wait_idle()
                self.assertEqual(self.letters("new"), [])
                for session in SESSIONS:
                    self.assertEqual(self.texts("echo", f"{session} {point}"), EVENTS)


if __name__ == "__main__":
    unittest.main()
