"""conversectl makes, shows, moves and cancels scheduled injects. Each inject comes once, despite kills of the daemon."""

import unittest

from case import ECHO, DaemonCase

BUNDLE = ECHO + "  - {name: active, flow: Echo, activeOnly: true}\n"


class Schedules(DaemonCase):
    bundle = BUNDLE

    def inject_later(self, session, *when, endpoint="echo", text="later", check=True):
        return self.daemon.ctl("inject", "--endpoint", self.tokens[endpoint], "--user", f"user of {session}",
                               "--session", session, "--text", text, *when, check=check)

    def ids(self):
        return [item["_id"] for item in self.daemon.ctl("schedules", "list")["items"]]

    def wait_for(self, session, count):
        """Waits until the session has `count` texts. Returns them."""
        texts = []
        while len(texts) < count:
            page = self.outputs("echo", session, after=len(texts), wait=30)
            self.assertTrue(page, texts)
            texts += [item["text"] for item in page]
        return texts

    def test_a_scheduled_inject_comes_once_and_in_order(self):
        made = self.inject_later("once", "--in", "5s")
        self.assertEqual(made["next"], [made["dueAt"]])
        self.assertIn(made["_id"], self.ids())
        self.say("echo", "once", "before")
        self.assertEqual(self.wait_for("once", 2), ["before", "later"])
        self.daemon.wait_idle()
        self.assertNotIn(made["_id"], self.ids())

    def test_a_scheduled_inject_comes_once_despite_kills(self):
        # Before the append; after the append, without the mark in the store; before the commit of the Turn; after it.
        for number, point in enumerate(("timer.before_append", "timer.after_append", "turn.before_submit", "turn.after_commit")):
            with self.subTest(point):
                session = f"killed-{number}"
                self.daemon.terminate()
                self.daemon.start({"CONVERSED_TEST_KILL_AT": point})
                self.inject_later(session, "--in", "1s")
                self.assertTrue(self.daemon.wait_end(60))
                self.daemon.start()
                self.assertEqual(self.wait_for(session, 1), ["later"])
                self.daemon.wait_idle()
                self.daemon.kill()
                self.daemon.start()
                self.daemon.wait_idle()
                self.assertEqual(self.texts("echo", session), ["later"])

    def test_a_rule_is_previewed_in_its_time_zone(self):
        before = self.ids()
        shown = self.inject_later("rule", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin", "--preview")
        self.assertEqual(len(shown["next"]), 10)
        self.assertEqual(shown["next"], sorted(set(shown["next"])))
        self.assertEqual(self.ids(), before, "the preview stored a schedule")
        made = self.inject_later("rule", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin")
        self.assertEqual(made["next"], shown["next"])
        self.assertEqual(self.daemon.ctl("schedules", "preview", made["_id"]), {"next": made["next"]})
        self.assertEqual(self.daemon.ctl("schedules", "show", made["_id"]), made)
        self.daemon.ctl("schedules", "cancel", made["_id"])
        self.assertEqual(self.ids(), before)
        self.assertIsNone(self.daemon.ctl("schedules", "cancel", made["_id"], check=False))

    def test_a_schedule_can_be_moved(self):
        made = self.inject_later("moved", "--at", "2030-01-01T10:00", "--timezone", "Europe/Berlin")
        self.assertEqual(made["dueAt"], 1893488400)
        moved = self.daemon.ctl("schedules", "reschedule", made["_id"], "--in", "0s")
        self.assertEqual(moved["_id"], made["_id"])
        self.assertEqual(self.wait_for("moved", 1), ["later"])

    def test_an_active_only_endpoint_drops_scheduled_injects_into_new_sessions(self):
        self.inject_later("nobody", "--in", "0s", endpoint="active")
        self.say("active", "somebody", "hello")
        self.inject_later("somebody", "--in", "0s", endpoint="active")
        while len(self.texts("active", "somebody")) < 2:
            self.outputs("active", "somebody", after=1, wait=30)
        self.daemon.wait_idle()
        self.assertEqual(self.texts("active", "nobody"), [])

    def test_a_repeated_request_makes_one_schedule(self):
        body = {"URLToken": self.tokens["echo"], "userId": "u", "sessionId": "keyed", "text": "t", "in": "1d"}
        before = len(self.ids())
        answers = [self.daemon.request("POST", "/management/schedules", body, {"Idempotency-Key": "k"}, basic=True)[:2]
                   for _ in range(2)]
        self.assertEqual(answers[0][0], 201, answers)
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(len(self.ids()), before + 1)
        other = self.daemon.request("POST", "/management/schedules", {**body, "in": "2d"}, {"Idempotency-Key": "k"},
                                    basic=True)
        self.assertEqual(other[0], 409)

    def test_wrong_requests_are_refused(self):
        body = {"URLToken": self.tokens["echo"], "userId": "u", "sessionId": "s", "text": "t"}
        for times in ({}, {"at": "soon"}, {"in": "1h", "cron": "* * * * *"}, {"cron": "61 * * * *"}, {"in": 5},
                      {"cron": "0 0 30 2 *"}, {"in": "1h", "timezone": "Mars"}, {"at": "2001-01-01T00:00"}):
            with self.subTest(times):
                status, problem, _ = self.daemon.request("POST", "/management/schedules", {**body, **times}, basic=True)
                self.assertEqual(status, 400, problem)
        status, problem, _ = self.daemon.request("POST", "/management/schedules?dryRun=maybe", {**body, "in": "1h"},
                                                 basic=True)
        self.assertEqual(status, 400, problem)


if __name__ == "__main__":
    unittest.main()
