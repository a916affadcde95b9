"""Faults made on purpose: the console's first page names each with its subject and its remedy."""

import datetime
import shutil
import sys
import urllib.parse

from case import daemon_process
from chromium import Browser  # of tests/support, which case.py puts into the path
from kafka_case import cluster_main
from test_cluster import ClusterCase
from test_follow_up import SetUpCase
from test_why import WhyCase

SHOWN = "document.querySelector('main').innerText"


class FirstPage:
    """For cases with a daemon: what the overview shows."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.stop)

    def open(self):
        who = urllib.parse.quote(daemon_process.EMAIL) + ":" + urllib.parse.quote(daemon_process.PASSWORD)
        self.browser.look(1280, 800, "light")
        self.browser.open("about:blank")
        self.browser.open(f"http://{who}@127.0.0.1:{self.daemon.ports['api']}/management/console")
        self.browser.wait_until("document.body && document.body.dataset.shown")

    def expect_shown(self, *words):
        """Opens the console, and waits until its first page has all of the words."""
        self.open()
        for word in words:
            self.browser.wait_until(f"{SHOWN}.includes({word!r})")


class Faults(FirstPage, WhyCase):
    settings = "limits: {inbox: 2}\n"

    def test_a_webhook_that_answers_500(self):
        self.hook.statuses.extend([500] * 100)
        self.accepted("hooked", "500", text="hello")
        self.expect_shown("The webhook of hooked fails", "answered 500", "Mend the receiver")

    def test_a_webhook_that_does_not_answer(self):
        self.hook.open.clear()
        self.accepted("hooked", "tarpit", text="hello")
        self.assertTrue(self.hook.wait_for(1))
        self.expect_shown("being sent", "The webhook of the Endpoint hooked", "has not answered the POST", "check the receiver")

    def test_a_slow_upstream(self):
        self.upstream.open.clear()
        self.accepted("lookup", "slow", text="hello")
        self.assertTrue(self.upstream.wait_for(1))
        self.expect_shown("call without an answer", "user of slow calls " + self.upstream.url.removeprefix("http://"), "Check the upstream")

    def test_an_upstream_that_answers_401(self):
        self.upstream.statuses.append(401)
        self.accepted("lookup", "401", text="hello")
        self.expect_shown("dead letter: ", "401", "Lookup version 1, nodes[0]", "Mend the cause")

    def test_an_event_that_loops(self):
        self.accepted("loop", "poison", text="hello")
        self.expect_shown("dead letter: ", "Loop version 1, again", "Mend the cause")

    def test_a_full_inbox(self):
        for _ in range(3):
            self.accepted("sleeper", "full", text="hello")
        self.expect_shown("The inbox of the session full of the user user of full holds 2 events", "sleeps", "limits.inbox is the limit")

    def test_a_timer_that_is_far_away(self):
        due = datetime.datetime.now() + datetime.timedelta(days=400)
        self.daemon.ctl("inject", "--endpoint", self.tokens["lookup"], "--user", "ann", "--session", "far", "--text", "hello", "--in", "400d")
        self.expect_shown("not due yet", "The scheduled inject for the session far of the user ann comes at its time", str(due.year))

    def test_a_store_that_refuses_writes(self):
        with self.daemon.locked_store():
            self.accepted("lookup", "locked", text="hello")
            self.expect_shown("The store can't be written", "Accepted events wait in the log", "Look at the disk")
        self.browser.wait_until(f"!{SHOWN}.includes('be written')")


class Poisoned(FirstPage, WhyCase):
    def test_an_event_that_crashes_the_daemon(self):
        self.poison()
        self.expect_shown("dead letter: ", "went down 3 times", "Mend the cause")


class Paused(FirstPage, WhyCase):
    settings = "delivery: {pause_after: 1ms}\n"

    def test_a_paused_webhook_is_resumed(self):
        self.hook.statuses.extend([503] * 100)
        event = self.accepted("hooked", "paused", text="hello")
        while self.why(event)[0] != 21:  # the first failure begins the time, the second one pauses the webhook
            for delivery in self.daemon.ctl("deliveries", "list")["items"]:
                self.daemon.ctl("deliveries", "retry", delivery["_id"], check=False)
            self.assertFalse(self.daemon.wait_end(0.05))
        self.expect_shown("The webhook of hooked is paused", "answered 503", "Resume sends all outputs", "Nothing else.")
        self.hook.statuses.clear()
        self.browser.run("[...document.querySelectorAll('main button')].find((each) => each.textContent === 'Resume').click()")
        self.browser.wait_until(f"!{SHOWN}.includes('is paused')")


class Quota(FirstPage, WhyCase):
    settings = "quota: {injects_per_month: 1}\n"

    def test_a_used_up_quota(self):
        self.accepted("hooked", "quota", text="hello")
        self.assertEqual(self.inject("hooked", "quota", text="hello")[0], 402)
        self.daemon.wait_idle()
        self.expect_shown("used up its injects of this month", "Raise quota.*")


class QuietHours(FirstPage, SetUpCase):
    @classmethod
    def setUpClass(cls):
        now = datetime.datetime.now(datetime.timezone.utc)
        begin, end = ((now + datetime.timedelta(hours=hours)).strftime("%H:%M") for hours in (-1, 3))
        cls.bundle = f"""
conversed: 1
project: {{name: Tests, locales: [en]}}
flows:
  - {{name: Main, nodes: [{{say: "hi"}}]}}
endpoints:
  - {{name: web, flow: Main}}
proactive: {{journey: {{after: 1s, text: "Still there?", expiresAfter: 10h, quietHours: {{from: "{begin}", to: "{end}", timezone: UTC}}}}}}
"""
        cls.end = end
        super().setUpClass()

    def test_quiet_hours_that_put_a_follow_up_off(self):
        self.say("web", "night", "hello")
        self.expect_shown("quiet hours", "Quiet hours of the project", f"to {self.end} in UTC", "conversectl timers reschedule")


class WithoutOwner(FirstPage, ClusterCase):
    roles = (("api",), ("worker", "scheduler"))

    def test_partitions_without_a_daemon(self):
        self.cluster.wait_owned(self.cluster.daemons[1:])
        self.cluster.daemons[1].kill()
        self.inject("count", "waits", data={"n": 1})
        self.expect_shown("of the log without a daemon", "Their events wait: partition", "Start a daemon with the role worker")


if __name__ == "__main__":
    if shutil.which("chromium") is None:
        print("SKIPPED: chromium is not installed; `./dev test` installs it")
        sys.exit(77)
    cluster_main()
