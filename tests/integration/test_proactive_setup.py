"""The set-up of proactive follow-up: a job that ends once, whatever is killed, with what it says made or undone."""

import http.client
import json
import pathlib
import sqlite3
import threading
import unittest

from case import DaemonCase

RANKS = {"queued": 0, "active": 1, "cancelling": 2, "done": 3, "cancelled": 3, "error": 3}
BUNDLE = """
conversed: 1
project: {{name: {name}, locales: [{locale}]}}
flows:
  - {{name: Main, nodes: [{{say: "hi"}}]}}
endpoints:
  - {{name: web, flow: Main}}
  - {{name: phone, flow: Main}}
proactive: {proactive}
"""
JOURNEY = '{journey: {after: 20m, text: "Still there?", expiresAfter: 4h, maxPerSession: 1}}'
# Of the steps: where a kill leaves something to go on with. The last numbers are beyond the end of a set-up.
STEP_POINTS = ([f"job.before_step:{n}" for n in range(1, 7)] + [f"job.after_step:{n}" for n in range(1, 6)]
               + ["job.after_lease", "job.after_provisioning"])
COMMIT_POINTS = [f"store.{when}_commit:{n}" for when in ("before", "after") for n in range(1, 13)]
UNDO_POINTS = [f"job.{when}_undo:{n}" for when in ("before", "after") for n in range(1, 4)]


class SetUp(DaemonCase):
    bundle = BUNDLE.format(name="Tests", locale="en", proactive=JOURNEY)
    settings = """
proactive: {provisioning: {url: "UPSTREAM/tenants", token: "a-token-of-32-bytes-or-more-for-tests", retry_for: 20s}}
"""

    def setUp(self):
        if self.daemon.process.poll() is not None:
            self.daemon.start()
        self.upstream.open.set()
        self.upstream.requests.clear()
        self.upstream.statuses.clear()

    def project(self, locale="en", proactive=JOURNEY):
        name = self.id().rsplit(".", 1)[1] + str(len(self.names))
        self.names.append(name)
        path = pathlib.Path(self.folder.name) / "project.yaml"
        path.write_text(BUNDLE.format(name=name, locale=locale, proactive=proactive))
        return self.daemon.ctl("import", str(path))["project"]["_id"]

    names = []

    def ask(self, method, path):
        return self.daemon.request(method, path, headers={"X-API-Key": self.key})[:2]

    def begin(self, project):
        return self.ask("POST", f"/v2.0/projects/{project}/settings/proactive/setup")

    def follow(self, task, until=lambda job: RANKS[job["status"]] == 3):
        """Polls the job until it is so; progress and rank of the status may never fall, restarts or not."""
        while True:
            status, job = self.ask("GET", f"/v2.0/tasks/{task}?wait=10")
            self.assertEqual(status, 200, job)
            self.check_progress(job)
            if until(job):
                return job

    seen = {}

    def check_progress(self, job):
        before = self.seen.get(job["_id"], (0, 0, 0))
        now = (RANKS[job["status"]], job["progress"], job["currentStep"])
        for earlier, later in zip(before, now):
            self.assertLessEqual(earlier, later, (before, job))
        self.seen[job["_id"]] = now

    def made(self, project):
        """What the store has of it: tenants, journeys that are active, generated Flows, attached Endpoints."""
        store = sqlite3.connect(f"file:{self.folder.name}/data/store.db?mode=ro", uri=True)
        try:
            return tuple(store.execute(query, (project,)).fetchone()[0] for query in (
                "SELECT COUNT(*) FROM proactive_tenants WHERE project_id = ?",
                "SELECT COUNT(*) FROM journeys WHERE active = 1 AND project_id = ?",
                "SELECT COUNT(*) FROM flows WHERE name LIKE 'Follow-up%' AND project_id = ?",
                "SELECT COUNT(*) FROM endpoints WHERE follow_up_flow_id IS NOT NULL AND project_id = ?"))
        finally:
            store.close()

    def rows(self, project):
        store = sqlite3.connect(f"file:{self.folder.name}/data/store.db?mode=ro", uri=True)
        try:
            return sum(store.execute(f"SELECT COUNT(*) FROM {table} WHERE project_id = ?", (project,)).fetchone()[0]
                       for table in ("proactive_tenants", "journeys")) + self.made(project)[2]
        finally:
            store.close()

    # --- Without faults -------------------------------------------------------------------------

    def test_it_makes_one_tenant_one_journey_and_one_flow(self):
        project = self.project("de-DE", "{journey: {after: 10m, text: \"Noch da, {{profile.name}}?\"}}")
        status, job = self.begin(project)
        self.assertEqual(status, 201, job)
        job = self.follow(job["_id"])
        self.assertEqual((job["status"], job["progress"], job["failReason"]), ("done", 100, None), job)
        self.assertEqual(sorted(job["data"]), ["flowId", "journeyId", "tenantId"])
        self.assertEqual((job["currentStep"], job["totalStep"]), (4, 4))
        self.assertEqual(self.made(project), (1, 1, 1, 2))
        path, headers, body = self.upstream.requests[0]
        announced = json.loads(body)
        self.assertEqual((path, announced["tenantId"]), ("/tenants", job["data"]["tenantId"]))
        self.assertEqual(headers["Authorization"], "Bearer a-token-of-32-bytes-or-more-for-tests")
        self.assertEqual(headers["Idempotency-Key"], f"{announced['tenantId']}-provision")
        status, problem = self.begin(project)
        self.assertEqual((status, problem["details"]), (409, {"taskId": job["_id"]}))
        # The tenant's secret is in clear nowhere.
        self.assertEqual(len(announced["secret"]), 64)
        for file in pathlib.Path(self.folder.name).rglob("*"):
            if file.is_file():
                self.assertNotIn(announced["secret"].encode(), file.read_bytes(), file)

    def test_a_service_that_fails_is_tried_again_under_one_key(self):
        self.upstream.statuses[:] = [503, 500, 200]
        _, job = self.begin(self.project())
        self.assertEqual(self.follow(job["_id"])["status"], "done")
        keys = {headers["Idempotency-Key"] for _, headers, _ in self.upstream.requests}
        self.assertEqual((len(self.upstream.requests), len(keys)), (3, 1))

    def test_a_failure_says_what_to_do_and_leaves_nothing(self):
        self.upstream.statuses[:] = [403]
        project = self.project()
        _, job = self.begin(project)
        job = self.follow(job["_id"])
        self.assertEqual((job["status"], job["data"]), ("error", None), job)
        self.assertIn("answered 403. Check proactive.provisioning", job["failReason"])
        self.assertEqual(self.rows(project), 0)
        self.assertTrue(self.upstream.requests[-1][0].startswith("/tenants/"), "the tenant is withdrawn")
        _, again = self.begin(project)
        self.assertEqual(self.follow(again["_id"])["status"], "done", "it can be set up again")

    def test_a_journey_names_its_own_flow_and_endpoint(self):
        project = self.project(proactive="{journey: {after: 10m, flow: Main, endpoint: phone}}")
        _, job = self.begin(project)
        self.assertEqual(self.follow(job["_id"])["status"], "done")
        self.assertEqual(self.made(project), (1, 1, 0, 1))

    def test_cancel_undoes_and_ends_cancelled(self):
        project = self.project()
        self.upstream.open.clear()
        _, job = self.begin(project)
        self.assertTrue(self.upstream.wait_for(1))
        status, cancelling = self.ask("POST", f"/v2.0/tasks/{job['_id']}/cancel")
        self.assertEqual((status, cancelling["status"]), (200, "cancelling"), cancelling)
        self.upstream.open.set()
        job = self.follow(job["_id"])
        self.assertEqual((job["status"], job["failReason"], job["data"]), ("cancelled", None, None), job)
        self.assertEqual(self.rows(project), 0)

    # --- With kills -----------------------------------------------------------------------------

    def killed_at(self, point, act):
        """Restarts the daemon so that it dies at the point, acts meanwhile, and starts it anew."""
        self.daemon.terminate()
        if self.daemon.start({"CONVERSED_TEST_KILL_AT": point}):
            try:
                act()
            except (OSError, http.client.HTTPException):
                pass  # it died under our hands
            self.daemon.wait_end(0 if self.daemon.process.poll() is not None else 5)
        self.daemon.kill()
        self.daemon.start()

    def test_it_ends_done_wherever_it_is_killed(self):
        for point in STEP_POINTS + COMMIT_POINTS:
            with self.subTest(point):
                project = self.project()
                task = []

                def act():
                    status, job = self.begin(project)
                    task.append(job["_id"])
                    self.follow(job["_id"])

                self.killed_at(point, act)
                status, answer = self.begin(project)  # its commit may have been lost with the daemon
                job = self.follow(answer["_id"] if status == 201 else answer["details"]["taskId"])
                self.assertEqual((job["status"], job["progress"]), ("done", 100), job)
                self.assertEqual(self.made(project), (1, 1, 1, 2))
                if task:
                    self.assertEqual(job["_id"], task[0], "what was answered 201 is the job that ends")

    def test_a_cancelled_one_ends_cancelled_wherever_it_is_killed(self):
        for point in UNDO_POINTS:
            with self.subTest(point):
                project = self.project()
                task = []

                def act():
                    self.upstream.requests.clear()
                    self.upstream.open.clear()
                    task.append(self.begin(project)[1]["_id"])
                    self.upstream.wait_for(1)
                    self.ask("POST", f"/v2.0/tasks/{task[0]}/cancel")
                    self.upstream.open.set()
                    self.follow(task[0])

                self.killed_at(point, act)
                self.upstream.open.set()
                job = self.follow(task[0])
                self.assertEqual((job["status"], job["data"]), ("cancelled", None), job)
                self.assertEqual(self.rows(project), 0)


if __name__ == "__main__":
    unittest.main()
