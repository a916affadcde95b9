"""The Flow that an Endpoint names for errors: kills lose and double nothing of it, and its dead letter can be replayed."""

import unittest

from case import DaemonCase


class ErrorFlow(DaemonCase):
    bundle = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - name: Orders
    nodes:
      - id: ask
        question: {text: "Which order?", storeIn: context.order}
      - if: context.order != 'good'
        then: [{forEach: context.lines, item: context.line, do: [{say: never}]}]
      - say: "Found."
  - name: Apology
    nodes:
      - addToContext: {failures: "{{(context.failures ?? 0) + 1}}"}
      - say: "Sorry for {{input.text}}."
      - httpRequest: {method: POST, url: "UPSTREAM/failures", body: {number: "{{context.failures}}"}}
      - handover: {text: "I get you a colleague."}
      - say: "It's me again, after {{context.failures}}."
endpoints:
  - {name: shop, flow: Orders, onError: Apology, errorText: "Please try later."}
"""

    def letters(self, session):
        return [letter for letter in self.daemon.ctl("deadletters", "list")["items"] if letter["sessionId"] == session]

    def test_runs_once_despite_kills_and_the_question_waits_on(self):
        points = ("turn.before_run", "turn.before_submit", "store.before_commit", "store.after_commit", "turn.after_commit",
                  "call.after_response")
        for point in points:
            with self.subTest(point):
                asked = len(self.upstream.requests)
                self.assertEqual(self.push("shop", point, 0, text="hi"), 200)
                self.daemon.wait_idle()
                self.push_through_a_kill(point, "shop", point, 1, text="bad")
                self.assertEqual(len(self.letters(point)), 1)
                told = ["Which order?", "Sorry for bad.", "I get you a colleague."]
                self.assertEqual(self.texts("shop", point), told)
                self.assertEqual({body for _, _, body in self.upstream.requests[asked:]}, {b'{"number":1}'})
                self.push("shop", point, 2, data={"handover": "resume"})
                self.push("shop", point, 3, text="good")
                self.daemon.wait_idle()
                self.assertEqual(self.texts("shop", point), [*told, "", "It's me again, after 1.", "Found."])
                self.assertEqual(len(self.letters(point)), 1)


if __name__ == "__main__":
    unittest.main()
