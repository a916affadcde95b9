"""The set-up of proactive follow-up is a job that either makes all of its parts or undoes them."""

import json
import pathlib
import unittest

from setup_case import SetUpCase


class SetUp(SetUpCase):
    def test_a_set_up_makes_one_tenant_one_journey_and_one_flow(self):
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
        # No file contains the tenant's secret in clear.
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

    def test_a_failure_names_the_remedy_and_leaves_no_parts(self):
        self.upstream.statuses[:] = [403]
        project = self.project()
        _, job = self.begin(project)
        job = self.follow(job["_id"])
        self.assertEqual((job["status"], job["data"]), ("error", None), job)
        self.assertIn("answered 403. Check proactive.provisioning", job["failReason"])
        self.assertEqual(self.rows(project), 0)
        self.assertTrue(self.upstream.requests[-1][0].startswith("/tenants/"), "the job did not withdraw the tenant")
        _, again = self.begin(project)
        self.assertEqual(self.follow(again["_id"])["status"], "done", "a second set-up failed")

    def test_a_journey_with_its_own_flow_generates_no_flow(self):
        project = self.project(proactive="{journey: {after: 10m, flow: Main, endpoint: phone}}")
        _, job = self.begin(project)
        self.assertEqual(self.follow(job["_id"])["status"], "done")
        self.assertEqual(self.made(project), (1, 1, 0, 1))

    def test_an_import_replaces_the_journey(self):
        project = self.project()
        _, job = self.begin(project)
        self.assertEqual(self.follow(job["_id"])["status"], "done")
        path = pathlib.Path(self.folder.name) / "project.yaml"
        text = path.read_text()
        self.assertIn("after: 20m", text)
        path.write_text(text.replace("after: 20m", "after: 30m"))
        self.import_file(path)
        self.assertEqual((self.journey(project)["afterMs"], self.made(project)), (30 * 60 * 1000, (1, 1, 1, 2)))
        path.write_text(text.replace('text: "Still there?"', "flow: Main, endpoint: phone"))
        self.import_file(path)
        self.assertEqual(self.made(project), (1, 1, 1, 1), "the import did not attach only the Endpoint of the new journey")

    def test_a_cancel_undoes_all_parts(self):
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


if __name__ == "__main__":
    unittest.main()
