"""The daemon follows up a silent user once. A message or a Node cancels the follow-up."""

import sqlite3
import unittest

from case import DaemonCase


class SetUpCase(DaemonCase):
    """Sets up proactive follow-up in the project."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        project = cls.daemon.ctl("import", f"{cls.folder.name}/bundle.yaml")["project"]["_id"]
        status, job, _ = cls.daemon.request("POST", f"/v2.0/projects/{project}/settings/proactive/setup",
                                            headers={"X-API-Key": cls.key})
        assert status == 201, job
        cls.job = cls.daemon.ctl("jobs", "watch", job["_id"])


class FollowUp(SetUpCase):
    bundle = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - name: Main
    nodes:
      - if: input.text == "bye"
        then: [{cancelFollowUp: true}]
      - if: input.text == "remind"
        then: [{followUp: {after: 1s, text: "As you wished.", data: {kind: reminder}}}]
      - say: "heard {{input.text}}"
endpoints:
  - {name: web, flow: Main}
  - {name: hook, flow: Main, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
proactive: {journey: {after: 2s, text: "Still there, {{input.userId}}?", expiresAfter: 1h, maxPerSession: 2}}
"""

    def test_jobs_watch_waits_for_the_end_of_the_set_up(self):
        self.assertEqual((self.job["status"], self.job["progress"]), ("done", 100))
        shown = self.daemon.ctl("jobs", "show", self.job["_id"])
        self.assertEqual(shown, self.job)
        self.assertEqual([job["_id"] for job in self.daemon.ctl("jobs", "list", "--status", "done")["items"]],
                         [self.job["_id"]])

    def test_a_silent_user_is_followed_up_once(self):
        self.say("hook", "silent", "hi")
        follow_up = "Still there, user of silent?"
        self.assertTrue(self.receiver.wait_for(
            lambda all: any(body["output"]["text"] == follow_up for _, _, body in all), 60))
        self.daemon.kill()
        self.daemon.start()
        self.say("hook", "clock", "hi")  # a second follow-up of the first session would come before this one
        self.assertTrue(self.receiver.wait_for(
            lambda all: any(body["sessionId"] == "clock" for _, _, body in all), 60))
        self.assertEqual(self.texts("hook", "silent"), ["heard hi", follow_up])

    def test_a_message_or_a_node_cancels_the_follow_up(self):
        self.say("web", "busy", "hi")
        self.say("web", "left", "hi")
        self.say("web", "left", "bye")
        self.say("web", "busy", "remind")
        item, = self.outputs("web", "busy", after=2, wait=30)
        self.assertEqual((item["text"], item["data"]), ("As you wished.", {"kind": "reminder"}))
        self.say("web", "later", "hi")
        self.assertEqual([item["text"] for item in self.outputs("web", "later", after=1, wait=30)],
                         ["Still there, user of later?"])
        self.assertEqual(self.texts("web", "left"), ["heard hi", "heard bye"])
        self.assertEqual(self.texts("web", "busy"), ["heard hi", "heard remind", "As you wished."])

    def test_a_follow_up_that_fell_due_while_the_daemon_was_down_comes_once(self):
        self.say("web", "down", "hi")
        self.daemon.kill()
        store = sqlite3.connect(f"{self.folder.name}/data/store.db")
        with store:  # moves the follow-up into the past, as if the daemon had been down for a minute
            late = store.execute("UPDATE follow_ups SET due_at = due_at - 60000 WHERE session IN"
                                 " (SELECT id FROM sessions WHERE key LIKE '%user of down%')").rowcount
        store.close()
        self.assertEqual(late, 1)
        self.daemon.start()
        self.assertEqual(len(self.outputs("web", "down", after=1, wait=30)), 1)
        self.daemon.kill()
        self.daemon.start()
        self.say("web", "fence", "hi")  # a second follow-up of the first session would come before this one
        self.assertEqual(len(self.outputs("web", "fence", after=1, wait=30)), 1)
        self.assertEqual(self.texts("web", "down"), ["heard hi", "Still there, user of down?"])


class Switch(SetUpCase):
    bundle = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - {name: Main, nodes: [{say: "heard {{input.text}}"}]}
endpoints:
  - {name: web, flow: Main}
proactive: {journey: {after: 1d, text: "Still there?"}}
"""

    def test_follow_ups_are_switched_off_and_on_again(self):
        self.assertEqual(self.daemon.ctl("proactive", "show", "Tests")["state"], "on")
        self.say("web", "switched", "hi")
        off = self.daemon.ctl("proactive", "off", "Tests")
        self.assertEqual(off["state"], "off")
        self.assertEqual(off["withdrawn"], 1)
        try:
            self.assertEqual(self.daemon.ctl("timers", "list", "--kind", "journey")["items"], [])
            self.say("web", "switched", "and now?")
            self.assertEqual(self.daemon.ctl("timers", "list", "--kind", "journey")["items"], [])
            status, problem, _ = self.daemon.request(
                "POST", f"/v2.0/projects/{self.report['project']['_id']}/settings/proactive/setup",
                headers={"X-API-Key": self.key})
            self.assertEqual((status, problem["details"]["taskId"]), (409, self.job["_id"]))
        finally:
            on = self.daemon.ctl("proactive", "on", "Tests")
        self.assertEqual((on["state"], on["withdrawn"]), ("on", 0))
        self.say("web", "switched", "here again")
        timer, = self.daemon.ctl("timers", "list", "--kind", "journey")["items"]
        self.assertEqual(timer["sessionId"], "switched")
        self.daemon.ctl("timers", "reschedule", timer["_id"], "--in", "0s")
        item, = self.outputs("web", "switched", after=3, wait=30)
        self.assertEqual(item["text"], "Still there?")


if __name__ == "__main__":
    unittest.main()
