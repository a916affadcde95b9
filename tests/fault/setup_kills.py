#!/usr/bin/env python3
"""Kills the daemon with -9 at each named point of a set-up, and cancels the set-up at each point.

The job always ends: done with one tenant, one journey and one Flow, or cancelled with none. A poller reads the job
all the time, across restarts. The job's progress, step and rank of status never fall.
"""

import http.client
import os
import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
from setup_case import RANKS, SetUpCase  # noqa: E402

# Points that a set-up passes. `:n` selects the n-th pass.
STEP_POINTS = ([f"job.before_step:{n}" for n in range(1, 7)] + [f"job.after_step:{n}" for n in range(1, 6)]
               + ["job.after_lease", "job.after_provisioning"])
# Around a try of the announcement that fails: before and after its commit, and before the next try. The steps 4 and 5
# are the one that puts the job off and the one of the next try.
TRY_POINTS = ["job.after_try", "job.before_step:4", "job.before_step:5", "job.after_provisioning"]
LAST_STEP = "job.before_step:6"
OVER = "job.after_step:5"
# Before and after each transaction. The last numbers are beyond the set-up's end.
COMMIT_POINTS = [f"store.{when}_commit:{n}" for when in ("before", "after") for n in range(1, 21)]
# Cancelling undoes steps in reverse: Flow, journey, withdrawal, tenant, end.
UNDO_POINTS = [f"job.{when}_undo:{n}" for when in ("before", "after") for n in range(1, 6)]


class Poller(threading.Thread):
    """Reads one job repeatedly until `stop`. `seen` has the answers."""

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
                # An answer without a change comes after a second, so `stop` returns soon.
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

    def test_a_set_up_ends_done_after_a_kill_at_each_point(self):
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
                        self.assertTrue(self.daemon.wait_end(60), "the daemon did not reach the point")
                self.restart()
                status, answer = self.begin(project)  # the kill may have lost the commit of the first one
                task = answer["_id"] if status == 201 else answer["details"]["taskId"]
                self.check_done(project, self.follow(task))
                if poller:
                    poller.stop()
                    self.assertEqual(task, poller.task, "the job that was answered 201 is not the job that ended")

    def test_a_set_up_whose_service_fails_ends_done_after_a_kill_around_a_try(self):
        for point in TRY_POINTS:
            with self.subTest(point):
                project = self.project()
                self.upstream.requests.clear()
                self.upstream.statuses[:] = [503]
                self.restart({"CONVERSED_TEST_KILL_AT": point})
                task, poller = self.begin_and_poll(project)
                self.assertTrue(self.daemon.wait_end(60), "the daemon did not reach the point")
                self.restart()
                self.check_done(project, self.follow(task))
                poller.stop()
                self.assertEqual(len({headers["Idempotency-Key"] for _, headers, _ in self.upstream.requests}), 1)
                # Only an answer whose commit was lost is asked for again.
                tries = 3 if point == "job.after_provisioning" else 2
                self.assertEqual(len(self.upstream.requests), tries, self.upstream.requests)

    def test_a_set_up_cancelled_at_each_point_ends_cancelled(self):
        for point in STEP_POINTS:
            for killed in (False, True):
                with self.subTest(point, killed=killed):
                    project = self.project()
                    self.restart_held_at(point)
                    task, poller = self.begin_and_poll(project)
                    with open(self.fifo, "w"):  # the daemon waits at the point
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

    def test_a_cancelled_set_up_ends_cancelled_after_a_kill_at_each_point(self):
        for point in UNDO_POINTS:
            with self.subTest(point):
                project = self.project()
                self.restart_held_at(LAST_STEP, CONVERSED_TEST_KILL_AT=point)
                task, poller = self.begin_and_poll(project)
                with open(self.fifo, "w"):
                    self.assertEqual(self.ask("POST", f"/v2.0/tasks/{task}/cancel")[0], 200)
                self.up.clear()
                self.assertTrue(self.daemon.wait_end(60), "the daemon did not reach the point while it undid the set-up")
                self.restart()
                self.check_undone(project, self.follow(task))
                poller.stop()


if __name__ == "__main__":
    unittest.main()
