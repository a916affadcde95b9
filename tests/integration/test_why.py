"""Faults made on purpose: `conversectl why` names cause, subject and remedy of each at once, and exits with its code; the
step of its receipt that goes on names them, too."""

import contextlib
import datetime
import http.client
import json
import subprocess
import unittest

from case import DaemonCase, Upstream
from ctl_case import CTL

BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - {name: Echo, nodes: [{say: "{{input.text}}"}]}
  - name: Lookup
    nodes:
      - httpRequest: {method: POST, url: "UPSTREAM/orders", body: {id: 1}, storeIn: context.order, timeout: 60s}
      - say: "{{context.order.state}}"
  - {name: Sleeper, nodes: [{sleep: {for: 1d}}, {say: "awake"}]}
  - {name: Asker, nodes: [{question: {text: "Your name?", storeIn: context.name}}]}
  - {name: Loop, nodes: [{id: again, addToContext: {n: 1}}, {goTo: again}]}
endpoints:
  - {name: hooked, flow: Echo, output: {webhook: {url: "HOOK/hook", secret: "${HOOK_SECRET}"}}}
  - {name: lookup, flow: Lookup}
  - {name: sleeper, flow: Sleeper}
  - {name: asker, flow: Asker}
  - {name: loop, flow: Loop}
"""


class WhyCase(DaemonCase):
    bundle = BUNDLE

    @classmethod
    def bring_up(cls):
        super().bring_up()
        cls.hook = Upstream()
        cls.addClassCleanup(cls.hook.stop)

    @classmethod
    def load(cls, text):
        return super().load(text.replace("HOOK/hook", cls.hook.url + "/hook"))

    def setUp(self):
        for server in (self.hook, self.upstream):
            server.open.set()
            server.statuses.clear()
            server.requests.clear()

    def accepted(self, endpoint, session, **body):
        """Injects an event. Returns its id."""
        status, answer, headers = self.inject(endpoint, session, **body)
        self.assertEqual(status, 200, answer)
        return headers["X-Inject-Id"]

    def poison(self):
        """Injects an event that ends the daemon three times, so that it becomes a dead letter."""
        self.daemon.terminate()
        for crash in range(3):
            self.daemon.start({"CONVERSED_TEST_KILL_AT": "turn.before_run"})
            if crash == 0:
                with contextlib.suppress(OSError, http.client.HTTPException):  # the answer may come before the crash
                    self.inject("hooked", "poisoned", text="boom")
            self.assertTrue(self.daemon.wait_end(60))
        self.daemon.start()
        self.daemon.wait_idle()

    def ctl(self, *arguments):
        """Returns the exit code and the text of conversectl."""
        done = subprocess.run([CTL, "--url", f"http://127.0.0.1:{self.daemon.ports['api']}", *arguments],
                              capture_output=True, text=True, timeout=120, env=self.daemon.environment)
        return done.returncode, done.stdout + done.stderr

    def why(self, *arguments):
        return self.ctl("why", *arguments)

    def expect(self, code, reason, subject, remedy, of):
        """Asks until the first reason has this code. Then expects its name, and words of its subject and its remedy. Returns
        the reasons."""
        while {(answer := self.ctl("--json", "why", *of))[0], (people := self.why(*of))[0]} != {code}:
            self.assertFalse(self.daemon.wait_end(0.05), answer)
        waits = json.loads(answer[1])["waits"]
        self.assertEqual((waits[0]["reason"], waits[0]["code"]), (reason, code))
        for word in subject:
            self.assertIn(word, waits[0]["subject"])
        self.assertIn(remedy, waits[0]["remedy"])
        for words in (reason, *subject, waits[0]["remedy"]):
            self.assertIn(words, people[1])
        return waits

    def expect_step(self, event, reason, remedy):
        """Waits until the event's receipt has this reason at the step that goes on. Expects it in the text for people, too."""
        wait = {}
        while wait.get("reason") != reason or reason not in (text := self.ctl("receipt", event)[1]):
            status, receipt, _ = self.daemon.request("GET", f"/management/receipts/{event}", basic=True)
            self.assertEqual((status, receipt["state"]), (200, "open"), receipt)
            waits = next(step["waits"] for step in receipt["steps"] if step["micros"] is None)
            wait = waits[0] if waits else {}
            self.assertFalse(self.daemon.wait_end(0.05), wait)
        self.assertIn(remedy, wait["remedy"])
        self.assertIn(wait["remedy"], text)

    def session(self, endpoint, session):
        return ["--endpoint", self.tokens[endpoint], "--user", f"user of {session}", "--session", session]


class Why(WhyCase):
    settings = "limits: {inbox: 2}\n"

    def test_a_webhook_that_answers_500_is_named_with_its_error(self):
        self.hook.statuses.extend([500] * 100)
        event = self.accepted("hooked", "500", text="hello")
        self.expect(19, "deliveryFailing", ["hooked", "answered 500"], "deliveries retry", of=[event])
        self.expect_step(event, "deliveryFailing", "deliveries retry")

    def test_a_webhook_that_does_not_answer_is_named(self):
        self.hook.open.clear()
        event = self.accepted("hooked", "tarpit", text="hello")
        self.assertTrue(self.hook.wait_for(1))
        waits = self.expect(27, "sending", ["hooked", "has not answered"], "check the receiver", of=[event])
        self.assertIsNotNone(waits[0]["since"])
        self.expect_step(event, "sending", "check the receiver")

    def test_a_slow_upstream_is_named_with_its_attempt(self):
        self.upstream.open.clear()
        event = self.accepted("lookup", "slow", text="hello")
        self.assertTrue(self.upstream.wait_for(1))
        upstream = self.upstream.url.removeprefix("http://")
        waits = self.expect(11, "call", ["Lookup", upstream, "attempt 1 of"], "Check the upstream", of=[event])
        self.assertEqual(waits[0]["expectedAt"], waits[0]["since"] + 60)
        self.expect(11, "call", [upstream], "Check the upstream", of=self.session("lookup", "slow"))
        self.expect_step(event, "call", "Check the upstream")

    def test_an_upstream_that_answers_401_is_named_in_the_dead_letter(self):
        self.upstream.statuses.append(401)
        event = self.accepted("lookup", "401", text="hello")
        self.expect(25, "deadLetter", ["answered 401", "Lookup"], "deadletters discard", of=[event])

    def test_an_event_that_loops_is_a_dead_letter_with_its_reason(self):
        event = self.accepted("loop", "loop", text="hello")
        self.expect(25, "deadLetter", ["Loop"], "deadletters replay", of=[event])

    def test_a_full_inbox_is_named_with_the_sleep_that_it_waits_for(self):
        events = [self.accepted("sleeper", "full", text="hello") for _ in range(3)]
        waits = self.expect(14, "inboxFull", ["session full", "2 events"], "limits.inbox", of=self.session("sleeper", "full"))
        self.assertEqual([wait["reason"] for wait in waits], ["inboxFull", "asleep"])
        self.assertEqual(self.inject("sleeper", "full", text="hello")[0], 429)
        self.expect_step(events[0], "asleep", "timers reschedule")
        self.expect_step(events[2], "behindEvents", "sessions reset")

    def test_an_event_behind_others_names_them(self):
        self.accepted("sleeper", "behind", text="hello")
        event = self.accepted("sleeper", "behind", text="again")
        waits = self.expect(10, "behindEvents", ["1 earlier event"], "sessions reset", of=[event])
        self.assertEqual([wait["reason"] for wait in waits], ["behindEvents", "asleep"])

    def test_a_timer_far_away_tells_its_time(self):
        made = self.daemon.ctl("inject", "--endpoint", self.tokens["hooked"], "--user", "ann", "--session", "far",
                               "--text", "hello", "--in", "30d")
        waits = self.expect(26, "notDue", ["session far", "comes at its time"], "timers reschedule", of=[made["_id"]])
        self.assertIsNotNone(waits[0]["expectedAt"])

    def test_a_store_that_refuses_writes_is_named(self):
        with self.daemon.locked_store():
            event = self.accepted("lookup", "locked", text="hello")
            waits = self.expect(23, "storeDown", ["refuses writes"], "Look at the disk", of=[event])
            self.assertIsNotNone(waits[0]["since"])

    def test_a_delivered_event_waits_for_nothing_and_tells_when_it_was_delivered(self):
        event = self.accepted("hooked", "delivered", text="hello")
        while "delivered at" not in (answer := self.why(event))[1]:
            self.assertFalse(self.daemon.wait_end(0.05), answer)
        self.assertEqual(answer[0], 0)
        self.assertIn("Nothing waits: it was delivered at", answer[1])

    def test_watch_shows_a_reason_until_it_ends(self):
        self.hook.statuses.extend([500] * 100)
        event = self.accepted("hooked", "watched", text="hello")
        self.expect(19, "deliveryFailing", ["hooked"], "deliveries retry", of=[event])
        url = f"http://127.0.0.1:{self.daemon.ports['api']}"
        with subprocess.Popen([CTL, "--url", url, "why", event, "--watch", "1"], stdout=subprocess.PIPE, text=True,
                              env=self.daemon.environment) as watch:
            self.addCleanup(watch.kill)
            for _ in range(2):
                self.assertTrue(any("deliveryFailing" in line for line in watch.stdout), "the watch has ended")
            self.hook.statuses.clear()
            self.daemon.ctl("deliveries", "retry", "--endpoint", "hooked", check=False)
            self.assertTrue(any("it was delivered at" in line for line in watch.stdout), "the watch has ended")
            watch.kill()

    def test_a_question_without_a_time_out_is_found_although_nothing_is_stuck(self):
        self.assertEqual(self.say("asker", "asked", "hi")[1]["text"], "Your name?")
        code, text = self.why(*self.session("asker", "asked"))
        self.assertEqual(code, 0)
        self.assertIn("Nothing waits: the session's next input runs at once", text)
        self.assertIn("waits for the user's answer", text)
        listed = self.daemon.ctl("sessions", "list", "--reason", "question")["items"]
        self.assertIn("asked", [item["sessionId"] for item in listed])

    def test_a_session_that_does_not_exist_is_not_found(self):
        code, text = self.why(*self.session("lookup", "new"))
        self.assertEqual(code, 1)
        self.assertNotIn("Nothing waits", text)


class Paused(WhyCase):
    settings = "delivery: {pause_after: 1ms}\n"

    def test_a_paused_webhook_is_named_and_resumed(self):
        self.hook.statuses.extend([503] * 100)
        event = self.accepted("hooked", "paused", text="hello")
        endpoint = next(each["_id"] for each in self.report["endpoints"] if each["name"] == "hooked")
        while self.why(event)[0] != 21:  # the first failure begins the time, the second one pauses the webhook
            delivery = self.daemon.ctl("deliveries", "list")["items"]
            if delivery:
                self.daemon.ctl("deliveries", "retry", delivery[0]["_id"], check=False)
            self.assertFalse(self.daemon.wait_end(0.05))
        waits = self.expect(21, "endpointPaused", ["hooked", "answered 503"], "endpoints resume", of=[event])
        self.assertIsNotNone(waits[0]["expectedAt"])
        self.expect_step(event, "endpointPaused", "endpoints resume")
        self.hook.statuses.clear()
        self.daemon.ctl("endpoints", "resume", endpoint)
        self.daemon.wait_idle()
        self.assertEqual(self.daemon.ctl("endpoints", "health", endpoint)["state"], "works")
        self.assertEqual(self.daemon.ctl("deliveries", "list")["items"], [])


class Quota(WhyCase):
    settings = "quota: {injects_per_month: 1}\n"

    def test_a_used_up_quota_is_named(self):
        self.accepted("lookup", "quota", text="hello")
        self.assertEqual(self.inject("lookup", "quota", text="hello")[0], 402)
        self.expect(18, "quota", ["organisation", "this month"], "Raise quota", of=self.session("lookup", "quota"))


class Poisoned(WhyCase):
    def test_an_event_that_crashes_the_daemon_is_named_in_its_dead_letter(self):
        self.poison()
        (letter,) = self.daemon.ctl("deadletters", "list")["items"]
        self.assertEqual(letter["sessionId"], "poisoned")
        for name in (letter["eventId"], letter["_id"]):
            self.expect(25, "deadLetter", [letter["_id"], "went down 3 times"], "deadletters replay", of=[name])


class QuietHours(WhyCase):
    bundle = BUNDLE + "proactive: {journey: {after: 1s, text: \"Still there?\", quietHours: QUIET}}\n"

    @classmethod
    def load(cls, text):
        now = datetime.datetime.now(datetime.timezone.utc)
        begin, end = (f"{now + datetime.timedelta(hours=hours):%H:%M}" for hours in (-1, 2))
        cls.window = f"from {begin} to {end} in Etc/UTC"
        return super().load(text.replace("QUIET", f'{{from: "{begin}", to: "{end}", timezone: Etc/UTC}}'))

    def test_quiet_hours_that_put_a_follow_up_off_are_named(self):
        project = self.report["project"]["_id"]
        status, job, _ = self.daemon.request("POST", f"/v2.0/projects/{project}/settings/proactive/setup",
                                             headers={"X-API-Key": self.key})
        self.assertEqual(status, 201, job)
        self.daemon.ctl("jobs", "watch", job["_id"])
        self.assertEqual(self.say("hooked", "quiet", "hello")[0], 200)
        (timer,) = self.daemon.ctl("timers", "list", "--kind", "journey")["items"]
        waits = self.expect(22, "quietHours", [self.window], "timers reschedule", of=[timer["_id"]])
        self.assertIsNotNone(waits[0]["expectedAt"])


if __name__ == "__main__":
    unittest.main()
