"""Time-outs of questions, and `conversectl timers`."""

import unittest

from case import DaemonCase


class Timers(DaemonCase):
    bundle = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - name: Main
    nodes:
      - if: input.text == "sleep"
        then: [{say: "Good night."}, {sleep: 1d}, {say: awake}, {stop: true}]
      - if: input.text == "remind"
        then: [{followUp: {after: 1d, text: "As you wished."}}, {stop: true}]
      - question:
          text: "Which city?"
          storeIn: context.city
          timeout: 1s
          onTimeout: [{say: "No hurry."}, {stop: true}]
      - say: "To {{context.city}}."
      - stop: true
endpoints:
  - {name: quick, flow: Main}
"""
    slow = {"timeout: 1s": "timeout: 1d", "name: quick": "name: slow", "name: Main": "name: Slow", "flow: Main": "flow: Slow"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        text = cls.bundle
        for quick, slow in cls.slow.items():
            text = text.replace(quick, slow)
        cls.tokens.update(cls.load(text))

    def timers(self, session=None, *options):
        if session:
            options += ("--endpoint", self.tokens["slow"], "--user", f"user of {session}", "--session", session)
        return self.daemon.ctl("timers", "list", *options)["items"]

    def test_a_question_times_out_once_despite_kills(self):
        self.time_out_once_despite_kills("quick", ["Which city?", "No hurry."])

    def test_an_answer_removes_the_timer_of_its_question(self):
        self.say("slow", "answered", "hi")
        timer, = self.timers("answered")
        self.assertEqual((timer["kind"], timer["userId"]), ("question", "user of answered"))
        self.assertEqual(self.say("slow", "answered", "Rome")[1]["text"], "To Rome.")
        self.assertEqual(self.timers("answered"), [])

    def test_the_timer_of_a_question_is_moved_and_cancelled(self):
        self.say("slow", "moved", "hi")
        timer, = self.timers("moved")
        moved = self.daemon.ctl("timers", "reschedule", timer["_id"], "--in", "0s")
        self.assertEqual(moved["_id"], timer["_id"])
        self.assertEqual(self.texts_of("slow", "moved", 2), ["Which city?", "No hurry."])
        self.say("slow", "left", "hi")
        timer, = self.timers("left")
        self.daemon.ctl("timers", "cancel", timer["_id"])
        self.assertEqual(self.timers("left"), [])
        self.assertEqual(self.say("slow", "left", "Rome")[1]["text"], "To Rome.")

    def test_a_sleep_can_be_rescheduled_but_not_cancelled(self):
        self.daemon.request("POST", "/v2.0/endpoint/inject",
                            {"URLToken": self.tokens["slow"], "userId": "user of sleeper", "sessionId": "sleeper",
                             "text": "sleep"}, {"X-API-Key": self.key})
        self.assertEqual(self.texts_of("slow", "sleeper", 1), ["Good night."])
        timer, = self.timers("sleeper", "--kind", "sleep")
        status, problem, _ = self.daemon.request("DELETE", f"/management/timers/{timer['_id']}", basic=True)
        self.assertEqual(status, 409, problem)
        self.assertIn("reset the session", problem["detail"])
        self.daemon.ctl("timers", "reschedule", timer["_id"], "--in", "0s")
        self.assertEqual(self.texts_of("slow", "sleeper", 2), ["Good night.", "awake"])

    def test_timers_are_listed_page_by_page(self):
        for number in range(3):
            self.say("slow", f"reminded-{number}", "remind")
        self.daemon.ctl("inject", "--endpoint", self.tokens["slow"], "--user", "u", "--session", "scheduled",
                        "--text", "hi", "--in", "2d")
        kinds = [timer["kind"] for timer in self.timers()]
        self.assertEqual(kinds.count("followUp"), 3)
        self.assertEqual(kinds[-1], "schedule")
        first = self.daemon.ctl("timers", "list", "--kind", "followUp", "--limit", "2")
        rest = self.daemon.ctl("timers", "list", "--kind", "followUp", "--after", first["next"])
        seen = [timer["sessionId"] for page in (first, rest) for timer in page["items"]]
        self.assertEqual(seen, [f"reminded-{number}" for number in range(3)])
        for timer in self.timers(None, "--kind", "followUp"):
            self.daemon.ctl("timers", "cancel", timer["_id"])
            self.assertIsNone(self.daemon.ctl("timers", "cancel", timer["_id"], check=False))
        self.assertEqual(self.timers(None, "--kind", "followUp"), [])

    def test_wrong_requests_are_refused(self):
        for query in ("kind=nap", "after=x", "limit=0", "userId=u", "after=1"):
            with self.subTest(query):
                status, problem, _ = self.daemon.request("GET", f"/management/timers?{query}", basic=True)
                self.assertIn(status, (400, 404), problem)
        self.assertEqual(self.daemon.request("DELETE", "/management/timers/nothing", basic=True)[0], 404)


if __name__ == "__main__":
    unittest.main()
