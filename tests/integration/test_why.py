"""Faults made on purpose: `conversectl why` names cause, subject and remedy of each at once, and exits with its code."""

import contextlib
import sqlite3
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
  - {name: Loop, nodes: [{id: again, addToContext: {n: 1}}, {goTo: again}]}
endpoints:
  - {name: hooked, flow: Echo, output: {webhook: {url: "HOOK/hook", secret: "${HOOK_SECRET}"}}}
  - {name: lookup, flow: Lookup}
  - {name: sleeper, flow: Sleeper}
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

    def why(self, *arguments):
        """Returns the exit code and the text."""
        done = subprocess.run([CTL, "--url", f"http://127.0.0.1:{self.daemon.ports['api']}", "why", *arguments],
                              capture_output=True, text=True, timeout=120, env=self.daemon.environment)
        return done.returncode, done.stdout + done.stderr

    def expect(self, code, *words, of):
        """Asks until the reason has this code. Then expects the words."""
        while (answer := self.why(*of))[0] != code:
            self.assertFalse(self.daemon.wait_end(0.05), answer)
        for word in words:
            self.assertIn(word, answer[1])

    def session(self, endpoint, session):
        return ["--endpoint", self.tokens[endpoint], "--user", f"user of {session}", "--session", session]


class Why(WhyCase):
    settings = "limits: {inbox: 2}\n"

    def test_a_webhook_that_answers_500_is_named_with_its_error(self):
        self.hook.statuses.extend([500] * 100)
        event = self.accepted("hooked", "500", text="hello")
        self.expect(19, "deliveryFailing", "hooked", "answered 500", "deliveries retry", of=[event])

    def test_a_webhook_that_does_not_answer_is_named(self):
        self.hook.open.clear()
        event = self.accepted("hooked", "tarpit", text="hello")
        self.assertTrue(self.hook.wait_for(1))
        self.expect(27, "sending", "hooked", "check the receiver", of=[event])

    def test_a_slow_upstream_is_named_with_its_attempt(self):
        self.upstream.open.clear()
        event = self.accepted("lookup", "slow", text="hello")
        self.assertTrue(self.upstream.wait_for(1))
        self.expect(11, "call", self.upstream.url.removeprefix("http://"), "attempt 1 of", "upstream", of=[event])
        self.expect(11, "Lookup", of=self.session("lookup", "slow"))

    def test_an_upstream_that_answers_401_is_named_in_the_dead_letter(self):
        self.upstream.statuses.append(401)
        event = self.accepted("lookup", "401", text="hello")
        self.expect(25, "deadLetter", "401", "deadletters replay", of=[event])

    def test_an_event_that_loops_is_a_dead_letter_with_its_reason(self):
        event = self.accepted("loop", "poison", text="hello")
        self.expect(25, "deadLetter", "deadletters replay", of=[event])

    def test_a_full_inbox_is_named_with_the_sleep_that_it_waits_for(self):
        for _ in range(3):
            self.accepted("sleeper", "full", text="hello")
        self.expect(14, "inboxFull", "2 events", "asleep", of=self.session("sleeper", "full"))
        self.assertEqual(self.inject("sleeper", "full", text="hello")[0], 429)

    def test_an_event_behind_others_names_them(self):
        self.accepted("sleeper", "behind", text="hello")
        event = self.accepted("sleeper", "behind", text="again")
        self.expect(10, "behindEvents", "1 earlier event", "asleep", of=[event])

    def test_a_timer_far_away_tells_its_time(self):
        made = self.daemon.ctl("inject", "--endpoint", self.tokens["hooked"], "--user", "ann", "--session", "far",
                               "--text", "hello", "--in", "30d")
        self.expect(26, "notDue", "expected at", of=[made["_id"]])

    def test_a_store_that_refuses_writes_is_named(self):
        store = sqlite3.connect(self.daemon.folder / "data" / "store.db", isolation_level=None, timeout=60)
        with contextlib.closing(store):
            store.execute("BEGIN IMMEDIATE")
            event = self.accepted("lookup", "locked", text="hello")
            self.expect(23, "storeDown", "since", of=[event])
            store.execute("ROLLBACK")

    def test_a_delivered_event_waits_for_nothing_and_tells_when_it_was_delivered(self):
        event = self.accepted("hooked", "delivered", text="hello")
        while "delivered at" not in (answer := self.why(event))[1]:
            self.assertFalse(self.daemon.wait_end(0.05), answer)
        self.assertEqual(answer[0], 0)
        self.assertIn("Nothing waits: it was delivered at", answer[1])

    def test_watch_shows_a_reason_until_it_ends(self):
        self.hook.statuses.extend([500] * 100)
        event = self.accepted("hooked", "watched", text="hello")
        self.expect(19, "deliveryFailing", of=[event])
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

    def test_nothing_waits_for_an_idle_session(self):
        self.assertEqual(self.why(*self.session("lookup", "idle")), (0, "Nothing waits.\n"))


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
        self.expect(21, "endpointPaused", "answered 503", "endpoints resume", of=[event])
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
        self.expect(18, "quota", "this month", of=self.session("lookup", "quota"))


if __name__ == "__main__":
    unittest.main()
