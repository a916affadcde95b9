"""The Node waitForEvent: kills lose and double no event, and `why` names what the session waits for."""

import unittest

from case import DaemonCase


class WaitForEvent(DaemonCase):
    bundle = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - name: Main
    nodes:
      - id: both
        waitForEvent:
          all: {packed: input.event.data.event == 'packed', paid: input.event.data.event == 'paid'}
          storeIn: context.both
          onMessage: [{say: "Patience."}]
          onTimeout: [{say: "Late."}, {stop: true}]
      - say: "Packed {{context.both.packed.data.n}}, paid {{context.both.paid.data.n}}."
  - name: Quick
    nodes:
      - say: "Waiting."
      - waitForEvent: {if: "false", timeout: 1s, onTimeout: [{say: "Late."}, {stop: true}]}
endpoints:
  - {name: shop, flow: Main}
  - {name: quick, flow: Quick}
"""

    def session(self, session):
        return ("--endpoint", self.tokens["shop"], "--user", f"user of {session}", "--session", session)

    def kept(self, session):
        """The events of the session that no Node has taken."""
        state = self.daemon.ctl("sessions", "show", *self.session(session))["flowState"]
        return [kept["event"]["data"]["event"] for kept in state.get("events", [])]

    def test_events_are_kept_and_taken_once_despite_kills(self):
        for point in ("log.before_commit", "log.after_commit", "turn.before_run", "turn.before_submit", "turn.after_commit"):
            with self.subTest(point):
                self.assertEqual(self.say("shop", point, "hi")[1]["text"], "")
                events = ("odd", "paid", "paid", "packed")
                for number, event in enumerate(events):
                    self.push_through_a_kill(point, "shop", point, number, data={"event": event, "n": number})
                self.assertEqual(self.texts("shop", point), ["Packed 3, paid 1."])
                self.assertEqual(self.kept(point), ["odd", "paid"])
                for number, event in enumerate(events):
                    self.assertEqual(self.push("shop", point, number, data={"event": event, "n": number}), 200)
                self.daemon.wait_idle()
                self.assertEqual(self.kept(point), ["odd", "paid"])
                self.assertEqual(self.texts("shop", point), ["Packed 3, paid 1."])

    def test_a_time_out_runs_once_despite_kills(self):
        self.time_out_once_despite_kills("quick", ["Waiting.", "Late."])

    def test_why_names_the_event_and_the_time_out_can_be_moved(self):
        self.say("shop", "why", "hi")
        timer, = self.daemon.ctl("timers", "list", *self.session("why"))["items"]
        for of in ((timer["_id"],), self.session("why")):
            wait, = self.daemon.ctl("why", *of, check=False)["waits"]
            self.assertEqual((wait["reason"], wait["code"], wait["expectedAt"]), ("event", 29, timer["dueAt"]))
            self.assertIn("waits for an event", wait["subject"])
            self.assertIn("Inject the event", wait["remedy"])
        self.assertEqual(self.say("shop", "why", "Hello?")[1]["text"], "Patience.")
        renewed, = self.daemon.ctl("timers", "list", *self.session("why"))["items"]
        self.assertEqual(renewed["dueAt"], timer["dueAt"])
        self.daemon.ctl("timers", "reschedule", renewed["_id"], "--in", "0s")
        self.assertEqual(self.texts_of("shop", "why", 2), ["Patience.", "Late."])
        self.assertEqual(self.daemon.ctl("why", *self.session("why"))["waits"], [])


if __name__ == "__main__":
    unittest.main()
