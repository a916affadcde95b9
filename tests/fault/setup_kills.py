#!/usr/bin/env python3
"""Kills the daemon with -9 at every named point of a set-up, and cancels it at every point.

In each case the job ends: done with one tenant, one journey and one Flow, or cancelled with nothing left. A poller asks for the
job all the time, across restarts: its progress, its step and the rank of its status never fall.
"""

import http.client
import os
import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
from setup_case import RANKS, SetUpCase  # noqa: E402

# The points that a set-up passes. A number selects the n-th pass.
STEP_POINTS = ([f"job.before_step:{n}" for n in range(1, 7)] + [f"job.after_step:{n}" for n in range(1, 6)]
               + ["job.after_lease", "job.after_provisioning"])
LAST_STEP = "job.before_step:6"
OVER = "job.after_step:5"
# Between any two of its transactions; the last numbers are beyond its end.
COMMIT_POINTS = [f"store.{when}_commit:{n}" for when in ("before", "after") for n in range(1, 21)]
# Undone from the last step on: Flow, journey, withdrawal, tenant, end.
UNDO_POINTS = [f"job.{when}_undo:{n}" for when in ("before", "after") for n in range(1, 6)]


class Poller(threading.Thread):
    """Asks for one job again and again until it is told to stop. `seen` has the answers."""

    def __init__(self, case, task):
        super().__init__(daemon=True)
        self.case = case
        self.task = task
        self.seen = []
        self.halted = threading.Event()
        self.start()

    def run(self):
        while not self.halted.is_set():
            try:
                # Without a change the answer comes after a second, so the poller stops soon when told to.
                status, job = self.case.ask("GET", f"/v2.0/tasks/{self.task}?wait=1")
            except (OSError, http.client.HTTPException):
                self.case.up.wait()
                continue
            if status == 200 and (not self.seen or job != self.seen[-1]):
                self.seen.append(job)
            if status == 200 and RANKS[job["status"]] == 3:
                return

    def stop(self):
        self.halted.set()
        self.join()
        ranks = [(RANKS[job["status"]], job["progress"], job["currentStep"]) for job in self.seen]
        for before, after in zip(ranks, ranks[1:]):
            for earlier, later in zip(before, after):
                self.case.assertLessEqual(earlier, later, self.seen)


class SetUpKills(SetUpCase):
    def setUp(self):
        super().setUp()
        self.up = threading.Event()
        self.up.set()
        self.fifo = pathlib.Path(self.folder.name) / "hold"
        if not self.fifo.exists():
            os.mkfifo(self.fifo)

    def restart(self, environment=None):
        """Kills the daemon and starts it again. Returns False if it died at the start."""
        self.up.clear()
        self.daemon.kill()
        alive = self.daemon.start(environment)
        self.up.set()
        return alive

    def restart_held_at(self, point, **more):
        self.restart({"CONVERSED_TEST_HOLD_AT": point, "CONVERSED_TEST_HOLD_FIFO": str(self.fifo), **more})

    def begin_and_poll(self, project):
        status, job = self.begin(project)
        self.assertEqual(status, 201, job)
        return job["_id"], Poller(self, job["_id"])

    def check_done(self, project, job):
        self.assertEqual((job["status"], job["progress"]), ("done", 100), job)
        self.assertEqual(self.made(project), (1, 1, 1, 2))

    def check_undone(self, project, job):
        self.assertEqual((job["status"], job["failReason"], job["data"]), ("cancelled", None, None), job)
        self.assertEqual((self.rows(project), self.made(project)), (0, (0, 0, 0, 0)))

    def test_it_ends_done_wherever_it_is_killed(self):
        for point in STEP_POINTS + COMMIT_POINTS:
            with self.subTest(point):
                project = self.project()
                poller = None
                if self.restart({"CONVERSED_TEST_KILL_AT": point}):
                    try:
                        task, poller = self.begin_and_poll(project)
                        self.follow(task)
                    except (OSError, http.client.HTTPException):
                        pass  # the daemon died during the request
                    if point in STEP_POINTS:
                        self.assertTrue(self.daemon.wait_end(60), "it dies at the point")
                self.restart()
                status, answer = self.begin(project)  # its commit may have been lost with the daemon
                task = answer["_id"] if status == 201 else answer["details"]["taskId"]
                self.check_done(project, self.follow(task))
                if poller:
                    poller.stop()
                    self.assertEqual(task, poller.task, "what was answered 201 is the job that ends")

    def test_it_ends_cancelled_wherever_it_is_cancelled(self):
        for point in STEP_POINTS:
            for killed in (False, True):
                with self.subTest(point, killed=killed):
                    project = self.project()
                    self.restart_held_at(point)
                    task, poller = self.begin_and_poll(project)
                    with open(self.fifo, "w"):  # it is there now, and waits
                        status, job = self.ask("POST", f"/v2.0/tasks/{task}/cancel")
                        self.assertEqual(status, 409 if point == OVER else 200, job)
                        if killed:
                            self.up.clear()
                            self.daemon.kill()
                    if killed:
                        self.restart()
                    job = self.follow(task)
                    (self.check_done if point == OVER else self.check_undone)(project, job)
                    poller.stop()

    def test_a_cancelled_one_ends_cancelled_wherever_it_is_killed(self):
        for point in UNDO_POINTS:
            with self.subTest(point):
                project = self.project()
                self.restart_held_at(LAST_STEP, CONVERSED_TEST_KILL_AT=point)
                task, poller = self.begin_and_poll(project)
                with open(self.fifo, "w"):
                    self.assertEqual(self.ask("POST", f"/v2.0/tasks/{task}/cancel")[0], 200)
                self.up.clear()
                self.assertTrue(self.daemon.wait_end(60), "it dies while it undoes")
                self.restart()
                self.check_undone(project, self.follow(task))
                poller.stop()


if __name__ == "__main__":
    unittest.main()
