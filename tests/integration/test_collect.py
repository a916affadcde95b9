"""The Node collect: one Turn has each event of a burst once and in order, whatever is killed. Each event has its own receipt."""

import subprocess
import unittest
import urllib.parse

from case import BIN, DaemonCase

POINTS = ("log.before_commit", "log.after_commit", "turn.before_run", "turn.before_submit", "turn.after_commit")


class Collect(DaemonCase):
    bundle = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - name: Main
    nodes:
      - id: burst
        collect:
          quiet: 1h
          if: input.event.data.n
          maxEvents: 4
          maxWait: 2h
          storeIn: context.burst
          onMessage: [{say: "Patience."}]
      - say: "{{input.source}}: {{input.events.map(event => event.data.n).join(' ')}}"
  - name: Many
    nodes:
      - collect: {quiet: 1h, maxEvents: 100, maxWait: 2h}
      - say: "{{input.events.map(event => event.data.n).join(' ')}}"
  - name: Quick
    nodes:
      - collect: 1s
      - say: "{{input.events.map(event => event.data.n).join(' ')}}"
endpoints:
  - {name: shop, flow: Main}
  - {name: many, flow: Many}
  - {name: quick, flow: Quick}
"""

    def session(self, session, endpoint="shop"):
        return ("--endpoint", self.tokens[endpoint], "--user", f"user of {session}", "--session", session)

    def add(self, session, number, endpoint="shop"):
        """Injects event `number` of the session under a key of its own. Returns the status, or None without an answer."""
        return self.push(endpoint, session, number, data={"n": number})

    def receipt(self, key):
        status, receipt, _ = self.daemon.request("GET", "/management/receipts/" + urllib.parse.quote(key, safe=""), basic=True)
        self.assertEqual(status, 200, receipt)
        return receipt

    def steps(self, session, number):
        """The steps of the receipt of that event, without waits."""
        return [step for step in self.receipt(f"{session} {number}")["steps"] if step["what"] != "waited"]

    def collected(self, session):
        """The numbers of the events that the Node has kept."""
        memories = self.daemon.ctl("sessions", "show", *self.session(session))["flowState"].get("once", {})
        return [kept["event"]["data"]["n"] for memory in memories.values() if memory for kept in memory["events"]]

    def let_it_be_quiet(self, session, endpoint, check=True):
        timer, = self.daemon.ctl("timers", "list", *self.session(session, endpoint))["items"]
        self.daemon.ctl("timers", "reschedule", timer["_id"], "--in", "0s", check=check)

    def one_text(self, endpoint, session):
        """Waits for the session's first output, then for all work. Returns the only text."""
        self.assertTrue(self.outputs(endpoint, session, wait=30))
        self.daemon.wait_idle()
        text, = self.texts(endpoint, session)
        return text

    def test_events_are_kept_and_run_once_despite_kills(self):
        for point in POINTS:
            with self.subTest(point):
                for number in (1, 2, 3):
                    self.push_through_a_kill(point, "shop", point, number, data={"n": number})
                    self.assertEqual(self.collected(point), list(range(1, number + 1)))
                    self.assertEqual(self.texts("shop", point), [])
                self.push_through_a_kill(point, "shop", point, 4, data={"n": 4})
                self.assertEqual(self.texts("shop", point), ["inject: 1 2 3 4"])
                for number in (1, 2, 3, 4):
                    self.assertEqual(self.add(point, number), 200)  # the clients ask again
                self.daemon.wait_idle()
                self.assertEqual(self.collected(point), [])
                self.assertEqual(self.texts("shop", point), ["inject: 1 2 3 4"])
                last = self.receipt(f"{point} 4")["_id"]
                for number in (1, 2, 3):
                    accepted, turn, ran = self.steps(point, number)
                    self.assertEqual((turn["collected"], ran["what"], ran["turnOf"]), (True, "ran", last), number)

    def test_a_quiet_time_runs_once_despite_kills(self):
        for number, point in enumerate(("timer.before_append", "timer.after_append", "turn.before_submit", "turn.after_commit")):
            with self.subTest(point):
                session = f"quiet {number}"
                for n in (1, 2, 3):
                    self.assertEqual(self.add(session, n), 200)
                self.daemon.wait_idle()
                self.daemon.terminate()
                self.daemon.start({"CONVERSED_TEST_KILL_AT": point})
                self.let_it_be_quiet(session, "shop", check=False)
                self.assertTrue(self.daemon.wait_end(60))
                self.daemon.start()
                self.assertEqual(self.one_text("shop", session), "timeOut: 1 2 3")
                self.daemon.kill()
                self.daemon.start()
                self.daemon.wait_idle()
                self.assertEqual(self.texts("shop", session), ["timeOut: 1 2 3"])
                self.assertEqual(self.collected(session), [])
                turns = {self.steps(session, n)[-1]["turnOf"] for n in (1, 2, 3)}
                self.assertEqual(len(turns), 1, turns)
                turn = self.receipt(turns.pop())["steps"]
                run, = [step for step in turn if step["what"] == "turn"]
                self.assertEqual((run["eventsRun"], run["events"]), (3, [self.receipt(f"{session} {n}")["_id"] for n in (1, 2, 3)]))

    def test_a_burst_that_kills_interrupt_is_one_turn_in_order(self):
        count = 30
        for number in range(1, count + 1):
            self.assertEqual(self.add("long", number, "many"), 200)
            if number % 7 == 0:
                self.daemon.kill()  # the last events are in the log, and perhaps in no commit
                self.daemon.start()
        self.daemon.wait_idle()
        self.assertEqual(self.texts("many", "long"), [])
        timers = self.daemon.ctl("timers", "list", *self.session("long", "many"))["items"]
        self.assertEqual(len(timers), 1, "each event replaces the timer of the one before")
        self.let_it_be_quiet("long", "many")
        self.assertEqual(self.one_text("many", "long"), " ".join(str(n) for n in range(1, count + 1)))

    def test_a_quiet_time_ends_by_itself(self):
        self.assertEqual(self.add("self", 1, "quick"), 200)
        self.assertEqual(self.one_text("quick", "self"), "1")

    def test_session_event_and_timer_tell_that_it_collects(self):
        self.assertEqual(self.inject("shop", "why", data={"other": True})[0], 200)
        self.daemon.wait_idle()
        wait, = self.daemon.ctl("why", *self.session("why"), check=False)["waits"]
        self.assertEqual((wait["reason"], wait["subject"]), ("event", "The Flow Main, at the Node burst, waits for an event."))
        self.assertEqual(self.add("why", 1), 200)
        self.daemon.wait_idle()
        timer, = self.daemon.ctl("timers", "list", *self.session("why"))["items"]
        event = self.receipt("why 1")["_id"]
        for of in ((timer["_id"],), (event,), self.session("why")):
            wait, = self.daemon.ctl("why", *of, check=False)["waits"]
            self.assertEqual((wait["reason"], wait["code"], wait["expectedAt"]), ("event", 29, timer["dueAt"]), of)
            self.assertIn("collects events.", wait["subject"])
        listed, = [each for each in self.daemon.ctl("sessions", "list", "--endpoint", self.tokens["shop"], "--reason", "event")["items"]
                   if each["sessionId"] == "why"]
        self.assertEqual(listed["waits"][0]["reason"], "event")
        receipt = self.receipt(event)
        self.assertEqual((receipt["state"], receipt["steps"][-1]["cause"], receipt["steps"][-1]["micros"]), ("open", "collect", None))
        self.assertEqual(receipt["steps"][-1]["waits"][0]["reason"], "event")
        self.assertEqual(self.say("shop", "why", "Hello?")[1]["text"], "Patience.")
        renewed, = self.daemon.ctl("timers", "list", *self.session("why"))["items"]
        self.assertEqual(renewed["dueAt"], timer["dueAt"])
        self.let_it_be_quiet("why", "shop")
        self.assertTrue(self.outputs("shop", "why", after=1, wait=30))
        self.daemon.wait_idle()
        self.assertEqual(self.daemon.ctl("why", *self.session("why"))["waits"], [])
        self.assertEqual(self.daemon.ctl("why", event)["waits"], [])
        self.assertEqual(self.receipt(event)["state"], "ended")
        shown = subprocess.run([BIN + "/conversectl", "--url", f"http://127.0.0.1:{self.daemon.ports['api']}", "receipt", event],
                               capture_output=True, text=True, env=self.daemon.environment, timeout=120, check=True).stdout
        self.assertIn("collected the event", shown)
        self.assertIn("ran with other events in the Turn of ", shown)
        self.assertIn("waited in a collect for more events", shown)

    def test_a_reset_leaves_no_event_behind(self):
        self.assertEqual(self.add("reset", 1), 200)
        self.daemon.wait_idle()
        self.daemon.ctl("sessions", "reset", *self.session("reset"))
        self.assertEqual(self.receipt("reset 1")["state"], "ended")
        self.assertEqual(self.daemon.ctl("timers", "list", *self.session("reset"))["items"], [])
        self.assertEqual(self.add("reset", 2), 200)
        self.daemon.wait_idle()
        self.assertEqual(self.collected("reset"), [2])


if __name__ == "__main__":
    unittest.main()
