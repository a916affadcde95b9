"""A Turn that exceeds a limit of the settings fails: the user gets only the error text, and a dead letter names the limit
and the Node."""

import unittest

from case import DaemonCase

SETTINGS = """
flows:
  {max_steps: 30, max_visits: 8, max_outputs: 3, max_context: 2KiB, max_profile: 1KiB, max_output: 1KiB, max_call: 1KiB}
calls: {timeout: 200ms}
"""

BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - name: Steps
    nodes:
""" + "      - addToContext: {count: \"{{(context.count || 0) + 1}}\"}\n" * 31 + """
  - name: Visits
    nodes:
      - id: again
        addToContext: {count: "{{(context.count || 0) + 1}}"}
      - id: back
        goTo: again
  - name: Outputs
    nodes: [{say: one}, {say: two}, {say: three}, {id: fourth, say: four}]
  - name: Context
    nodes: [{id: write, addToContext: {text: "{{input.text.repeat(input.data.times)}}"}}, {say: kept}]
  - name: Profile
    nodes: [{id: write, updateProfile: {text: "{{input.text.repeat(input.data.times)}}"}}, {say: kept}]
  - name: Output
    nodes: [{id: speak, say: "{{input.text.repeat(input.data.times)}}"}]
  - name: Call
    nodes:
      - {id: ask, httpRequest: {method: POST, url: "UPSTREAM/orders", body: "{{input.text.repeat(input.data.times)}}"}}
      - say: called
  - name: Time
    nodes:
      - {id: ask, httpRequest: {url: "UPSTREAM/orders"}}
      - say: called
  - name: Caught
    nodes:
      - {id: ask, httpRequest: {url: "UPSTREAM/orders", onError: [{say: "{{input.error.code}}"}]}}
endpoints:
""" + "".join(f"  - {{name: {name.lower()}, flow: {name}, errorText: sorry}}\n" for name in (
    "Steps", "Visits", "Outputs", "Context", "Profile", "Output", "Call", "Time", "Caught"))


class FlowLimits(DaemonCase):
    settings = SETTINGS
    bundle = BUNDLE

    def reason(self, session):
        letters = self.daemon.ctl("deadletters", "list")["items"]
        reasons = [letter["reason"] for letter in letters if letter["sessionId"] == session]
        self.assertEqual(len(reasons), 1, letters)
        return reasons[0]

    def expect_failure(self, endpoint, *parts, times=0):
        session = f"{endpoint} over"
        status, answer = self.say(endpoint, session, "x", data={"times": times})
        self.assertEqual((status, answer["text"]), (200, "sorry"), answer)
        self.assertEqual(self.texts(endpoint, session), ["sorry"], "other outputs of the Turn show")
        reason = self.reason(session)
        for part in parts:
            self.assertIn(part, reason)
        return session

    def context_of(self, endpoint, session):
        shown = self.daemon.ctl("sessions", "show", "--endpoint", self.tokens[endpoint], "--user",
                                f"user of {session}", "--session", session)
        return shown["context"]

    def test_a_turn_with_too_many_nodes_fails(self):
        session = self.expect_failure("steps", "more than 30 Nodes in one Turn", "nodes[30]")
        self.assertEqual(self.context_of("steps", session), {})

    def test_a_turn_that_runs_one_node_too_often_fails(self):
        session = self.expect_failure("visits", "Node again", "runs more than 8 times in one Turn")
        self.assertEqual(self.context_of("visits", session), {})

    def test_a_turn_with_too_many_outputs_fails(self):
        self.expect_failure("outputs", "Node fourth", "more than 3 outputs in one Turn")

    def test_a_turn_with_a_too_large_value_fails(self):
        for endpoint, limit, node, words in (
                ("context", 2048, "write", "the context grows beyond 2048 bytes"),
                ("profile", 1024, "write", "the profile grows beyond 1024 bytes"),
                ("output", 1024, "speak", "an output of more than 1024 bytes"),
                ("call", 1024, "ask", "a call of more than 1024 bytes")):
            with self.subTest(endpoint):
                status, answer = self.say(endpoint, f"{endpoint} within", "x", data={"times": limit // 2})
                self.assertEqual(status, 200)
                self.assertNotEqual(answer["text"], "sorry")
                self.expect_failure(endpoint, f"Node {node}", words, times=limit + 1)

    def test_a_call_that_takes_too_long_fails(self):
        self.upstream.open.clear()
        try:
            self.expect_failure("time", "Node ask", "timeout")
            status, answer = self.say("caught", "caught", "x")
            self.assertEqual((status, answer["text"]), (200, "timeout"), "the Turn did not take the branch onError")
        finally:
            self.upstream.open.set()


if __name__ == "__main__":
    unittest.main()
