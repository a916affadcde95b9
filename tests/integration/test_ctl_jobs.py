"""`conversectl jobs` and `conversectl proactive`, for people and with --json. Each test sets up its own project."""

import pathlib
import unittest

from case import ECHO
from ctl_case import CtlCase, sheet


class JobCommands(CtlCase):
    settings = 'proactive: {provisioning: {url: "UPSTREAM/tenants", token: "a-token-of-32-bytes-or-more-for-tests"}}\n'
    bundle = ECHO

    def begin_job(self, name):
        """Imports a project of this name and begins its set-up. Returns the ids of project and job."""
        path = pathlib.Path(self.folder.name) / "project.yaml"
        path.write_text(ECHO.replace("Tests", name) + 'proactive: {journey: {after: 20m, text: "Still there?", '
                        'expiresAfter: 4h, maxPerSession: 1}}\n')
        project = self.daemon.ctl("import", str(path))["project"]["_id"]
        status, job, _ = self.daemon.request("POST", f"/v2.0/projects/{project}/settings/proactive/setup", None,
                                             {"X-API-Key": self.key})
        self.assertEqual(status, 201, job)
        return project, job["_id"]

    def done_job(self, name):
        project, job = self.begin_job(name)
        self.run_ctl("jobs", "watch", job)
        return project, job

    def test_jobs_list(self):
        _, job = self.done_job("listed")
        self.row(self.people("jobs", "list"), ID=job, STATUS="done", PERCENT="100")
        self.assertEqual([item["_id"] for item in self.json("jobs", "list", "--project", "listed")["items"]], [job])
        self.assertEqual(self.people("jobs", "list", "--project", "listed", "--status", "active"), "No jobs.\n")

    def test_jobs_show(self):
        _, job = self.done_job("shown")
        self.assertEqual(sheet(self.people("jobs", "show", job))["status"], "done")
        self.assertEqual(self.json("jobs", "show", job)["status"], "done")

    def test_jobs_watch(self):
        _, job = self.begin_job("watched")
        self.people("jobs", "watch", job)
        self.assertEqual(self.run_ctl("jobs", "watch", job).stderr, "100%  done\n")
        self.assertEqual(self.json("jobs", "watch", job)["status"], "done")

    def test_jobs_cancel(self):
        for number, run in enumerate((self.people, self.json)):
            self.upstream.open.clear()
            try:
                _, job = self.begin_job(f"cancelled {number}")
                done = run("jobs", "cancel", job)
            finally:
                self.upstream.open.set()
            if run == self.people:
                self.assertRegex(done, f"^Cancelled.\n$|conversectl jobs watch {job}\n$")
            else:
                self.assertIn(done["status"], ("cancelling", "cancelled"))
            self.run_ctl("jobs", "watch", job, code=1)

    def test_proactive_show(self):
        self.assertEqual(self.people("proactive", "show", "Tests"), "not set up\n")
        project, _ = self.done_job("set up")
        self.assertEqual(self.json("proactive", "show", project), {"projectId": project, "state": "on"})

    def test_proactive_on(self):
        self.done_job("switched on")
        self.run_ctl("proactive", "off", "switched on")
        self.assertEqual(self.people("proactive", "on", "switched on"), "on; withdrawn: 0\n")
        self.assertEqual(self.json("proactive", "on", "switched on")["state"], "on")

    def test_proactive_off(self):
        self.done_job("switched off")
        self.assertEqual(self.people("proactive", "off", "switched off"), "off; withdrawn: 0\n")
        self.assertEqual(self.json("proactive", "off", "switched off")["state"], "off")


if __name__ == "__main__":
    unittest.main()
