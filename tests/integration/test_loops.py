"""The Nodes forEach and executeFlow: kills lose and double nothing, and an import finds sessions in their loops."""

import unittest

from case import DaemonCase


class Loops(DaemonCase):
    bundle = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - name: Calls
    nodes:
      - forEach: input.data.items
        item: context.item
        index: context.n
        do:
          - httpRequest: {url: "UPSTREAM/{{encodeURIComponent(context.item)}}", storeIn: context.answer}
          - say: "{{context.n}} {{context.answer.path}}"
          - addToContext: {done: "{{(context.done ?? 0) + 1}}"}
      - say: "{{context.done}} done"
  - name: Tour
    nodes:
      - addToContext: {total: 0}
      - id: stops
        forEach: "['a', 'b', 'c']"
        item: context.item
        do:
          - id: visit
            executeFlow: {flow: Ask, with: {name: "{{context.item}}", before: "{{context.total}}"}, storeIn: context.total}
      - say: "total {{context.total}}"
  - name: Ask
    nodes:
      - id: ask
        question: {text: "How many {{arguments.name}}?", type: integer, storeIn: context.count, onNoAnswer: []}
      - httpRequest: {url: "UPSTREAM/{{arguments.name}}", storeIn: context.answer}
      - say: "{{arguments.name}} from {{context.answer.path}}"
      - return: "{{arguments.before + context.count}}"
endpoints:
  - {name: calls, flow: Calls}
  - {name: tour, flow: Tour}
"""
    told = ["How many a?", "a from /a", "How many b?", "b from /b", "How many c?", "c from /c", "total 12"]

    def flow_state(self, endpoint, session):
        return self.daemon.ctl("sessions", "show", "--endpoint", self.tokens[endpoint], "--user", f"user of {session}",
                               "--session", session)["flowState"]

    def test_a_loop_of_calls_has_each_effect_once_despite_kills(self):
        for point in ("turn.before_submit", "turn.after_commit", "call.after_response"):
            for times in (1, 2, 3):
                session = f"{point}-{times}"
                with self.subTest(session):
                    asked = len(self.upstream.requests)
                    self.push_through_a_kill(f"{point}:{times}", "calls", session, 0, data={"items": ["a", "b/c", "d"]})
                    self.assertEqual(self.texts("calls", session), ["0 /a", "1 /b%2Fc", "2 /d", "3 done"])
                    calls = {(path, headers["Idempotency-Key"]) for path, headers, _ in self.upstream.requests[asked:]}
                    self.assertEqual(sorted(path for path, _ in calls), ["/a", "/b%2Fc", "/d"])
                    self.assertNotIn("loops", str(self.flow_state("calls", session)))

    def test_a_flow_with_arguments_in_a_loop_goes_on_despite_kills(self):
        for point in ("log.after_commit", "turn.before_submit", "turn.after_commit", "call.after_response"):
            with self.subTest(point):
                self.push("tour", point, 0, text="hi")
                for number in (3, 4, 5):
                    self.push_through_a_kill(point, "tour", point, number, text=str(number))
                self.assertEqual(self.texts("tour", point), self.told)
                self.assertEqual(self.flow_state("tour", point).get("waiting"), None)

    def test_an_import_finds_a_session_in_its_loop(self):
        self.addCleanup(self.load, self.bundle)
        self.push("tour", "import", 0, text="hi")
        self.daemon.wait_idle()
        # A Node before the loop, a longer body, another list and another question.
        self.load(self.bundle.replace("      - addToContext: {total: 0}\n", "      - addToContext: {total: 0}\n      - say: hello\n")
                  .replace("""forEach: "['a', 'b', 'c']\"""", "forEach: \"['x']\"")
                  .replace("storeIn: context.total}", "storeIn: context.total}\n          - say: \"so far {{context.total}}\"")
                  .replace("How many {{", "Now how many {{"))
        self.daemon.kill()
        self.daemon.start()
        for number in (3, 4, 5):
            self.assertEqual(self.push("tour", "import", number, text=str(number)), 200)
        self.daemon.wait_idle()
        self.assertEqual(self.texts("tour", "import"),
                         ["How many a?", "a from /a", "so far 3", "Now how many b?", "b from /b", "so far 7",
                          "Now how many c?", "c from /c", "so far 12", "total 12"])

    def test_a_call_in_a_loop_ends_in_its_version_and_the_next_item_in_the_new_one(self):
        self.addCleanup(self.load, self.bundle)
        self.addCleanup(self.upstream.open.set)
        self.push("tour", "busy", 0, text="hi")
        asked = len(self.upstream.requests)
        self.upstream.open.clear()
        self.push("tour", "busy", 3, text="3")
        self.assertTrue(self.upstream.wait_for(asked + 1))
        self.load(self.bundle.replace(" from {{", " now from {{"))
        self.upstream.open.set()
        for number in (4, 5):
            self.assertEqual(self.push("tour", "busy", number, text=str(number)), 200)
        self.daemon.wait_idle()
        self.assertEqual(self.texts("tour", "busy"),
                         ["How many a?", "a from /a", "How many b?", "b now from /b", "How many c?", "c now from /c", "total 12"])


if __name__ == "__main__":
    unittest.main()
