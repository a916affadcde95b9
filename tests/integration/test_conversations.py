"""Conversations over HTTP: messages of users, injects of other systems, and dead letters of operators."""

import concurrent.futures
import contextlib
import threading
import unittest

from case import CONNECTION_TOKEN, DaemonCase

BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
connections: [{name: crm, type: httpBearer, fields: {token: "${CRM_TOKEN}"}}]
flows:
  - name: Echo
    nodes:
      - addToContext: {count: "{{(context.count || 0) + 1}}"}
      - say: "{{input.source}} {{context.count}}: {{input.text}}"
  - name: Ask
    nodes:
      - id: age
        question: {text: "How old?", type: number, storeIn: context.age, reprompt: "A number, please."}
      - say: "{{context.age}} years"
  - name: Lookup
    nodes:
      - say: "looking"
      - httpRequest: {connection: crm, method: POST, url: "UPSTREAM/orders", body: {id: "{{input.text}}"},
                      storeIn: context.order, timeout: 30s, retries: 1,
                      onError: [{say: "failed: {{input.error.code}} {{input.error.status}}"}, {stop: true}]}
      - say: "{{input.text}}: {{context.order.state}}"
  - name: Broken
    nodes:
      - id: again
        addToContext: {n: "{{(context.n || 0) + 1}}"}
      - if: input.text == "loop"
        then: [{goTo: again}]
      - say: "fine {{context.n}}"
endpoints:
  - {name: echo, flow: Echo, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
  - {name: active, flow: Echo, activeOnly: true}
  - {name: ask, flow: Ask}
  - {name: lookup, flow: Lookup, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
  - {name: broken, flow: Broken}
  - {name: sorry, flow: Broken, errorText: "Sorry."}
"""


class Conversations(DaemonCase):
    bundle = BUNDLE

    def test_a_users_message_is_answered_with_the_flows_outputs(self):
        status, answer = self.say("echo", "hello", "Hi")
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["text"], "user 1: Hi")
        self.assertEqual(answer["sessionId"], "hello")
        self.assertEqual([o["source"] for o in answer["outputStack"]], ["bot"])

    def test_the_output_of_an_inject_is_delivered_signed_and_listed(self):
        status, text, headers = self.inject("echo", "push", text="your parcel has left")
        self.assertEqual((status, text), (200, "Message was sent to AI for Flow processing"))
        self.assertRegex(headers["X-Inject-Id"], "^[a-z0-9]{24}$")
        self.assertEqual(headers["Access-Control-Allow-Origin"], "*")
        self.assertTrue(self.receiver.wait_for(
            lambda all: any(body["sessionId"] == "push" for _, _, body in all), 30))
        item, = self.outputs("echo", "push", wait=10)
        self.assertEqual((item["seq"], item["text"]), (1, "inject 1: your parcel has left"))
        self.assertEqual(self.receiver.bad_signatures, 0)

    def test_a_poll_waits_for_the_next_output(self):
        got = []
        poll = threading.Thread(target=lambda: got.extend(self.outputs("echo", "poll", wait=30)))
        poll.start()
        self.inject("echo", "poll", text="now")
        poll.join()
        self.assertEqual([item["text"] for item in got], ["inject 1: now"])

    def test_a_keyed_inject_has_one_effect_and_another_body_is_a_conflict(self):
        key = {"Idempotency-Key": "once"}
        first = self.inject("echo", "keyed", key, text="a")
        again = self.inject("echo", "keyed", key, text="a")
        self.assertEqual((first[0], again[0]), (200, 200))
        self.assertEqual(first[2]["X-Inject-Id"], again[2]["X-Inject-Id"])
        self.assertEqual(self.inject("echo", "keyed", key, text="b")[0], 409)
        self.daemon.wait_idle()
        self.assertEqual(self.texts("echo", "keyed"), ["inject 1: a"])

    def test_a_keyed_message_is_answered_twice_and_run_once(self):
        key = {"Idempotency-Key": "message"}
        first = self.say("echo", "keyed message", "a", key)
        again = self.say("echo", "keyed message", "a", key)
        self.assertEqual(first, again)
        self.assertEqual(first[0], 200)
        self.assertEqual(self.texts("echo", "keyed message"), ["user 1: a"])

    def test_an_active_only_endpoint_refuses_injects_into_new_sessions(self):
        status, body, headers = self.inject("active", "never", text="hello?")
        self.assertEqual(status, 409)
        self.assertEqual((body["status"], body["code"], body["type"]), (409, 1004, "Conflict"))
        self.assertEqual(headers["X-Trace-Id"], body["traceId"])
        self.assertEqual(self.say("active", "begun", "Hi")[0], 200)
        self.assertEqual(self.inject("active", "begun", text="hello!")[0], 200)

    def test_a_question_is_repeated_until_the_answer_is_valid(self):
        self.assertEqual(self.say("ask", "age", "Hi")[1]["text"], "How old?")
        self.assertEqual(self.say("ask", "age", "old")[1]["text"], "A number, please.")
        self.assertEqual(self.say("ask", "age", "41")[1]["text"], "41 years")

    def test_a_failed_turn_becomes_a_dead_letter_and_the_session_goes_on(self):
        self.assertEqual(self.say("broken", "loop", "fine?")[1]["text"], "fine 1")
        status, body = self.say("broken", "loop", "loop")
        self.assertEqual(status, 500)
        self.assertRegex(body["traceId"], "^[0-9a-f]{32}$")
        self.assertEqual(self.say("broken", "loop", "and now?")[1]["text"], "fine 2")
        status, answer = self.say("sorry", "loop", "loop")
        self.assertEqual((status, answer["text"]), (200, "Sorry."))
        letters = self.daemon.ctl("deadletters", "list")["items"]
        self.assertTrue(any("again" in letter["reason"] for letter in letters), letters)

    def test_a_dead_letter_is_replayed_after_its_flow_is_fixed(self):
        self.assertEqual(self.say("broken", "mend", "loop")[0], 500)
        letter = next(l for l in self.daemon.ctl("deadletters", "list")["items"] if l["sessionId"] == "mend")
        self.load(BUNDLE.replace('input.text == "loop"', 'input.text == "never"'))
        try:
            self.daemon.ctl("deadletters", "replay", letter["_id"])
            self.daemon.wait_idle()
            self.assertEqual(self.texts("broken", "mend"), ["fine 1"])
            shown = self.daemon.ctl("deadletters", "show", letter["_id"])
            self.assertEqual(shown["state"], "replayed")
        finally:
            self.load(BUNDLE)


class Deadlines(DaemonCase):
    """The execution of a message takes longer than `api.turn_timeout`."""

    bundle = BUNDLE
    settings = "api: {turn_timeout: 1s}\n"

    def setUp(self):
        # The first message of a daemon in a cluster also waits until its partition is assigned.
        self.upstream.open.set()
        self.say("lookup", "first", "A-0")
        self.daemon.wait_idle()
        self.upstream.open.clear()
        self.upstream.requests.clear()

    def tearDown(self):
        self.upstream.open.set()

    def delivered(self, session):
        self.daemon.wait_idle()
        return [body["output"]["text"] for _, _, body in list(self.receiver.deliveries) if body["sessionId"] == session]

    def test_the_answer_has_the_outputs_so_far_and_the_webhook_gets_the_rest(self):
        status, answer = self.say("lookup", "late", "A-1")
        self.assertEqual((status, answer["text"]), (202, "looking"))
        self.upstream.open.set()
        self.assertEqual(self.delivered("late"), ["A-1: shipped"])
        self.assertEqual(self.texts("lookup", "late"), ["looking", "A-1: shipped"])

    def test_a_repeat_of_the_key_gets_all_outputs_without_a_second_run(self):
        key = {"Idempotency-Key": "late"}
        self.assertEqual(self.say("lookup", "keyed", "A-2", key)[0], 202)
        status, answer = self.say("lookup", "keyed", "A-2", key)
        self.assertEqual((status, answer["text"]), (202, "looking"))
        self.upstream.open.set()
        self.assertEqual(self.delivered("keyed"), ["A-2: shipped"])
        for _ in range(2):
            status, answer = self.say("lookup", "keyed", "A-2", key)
            self.assertEqual((status, answer["text"]), (200, "looking\nA-2: shipped"))
        self.assertEqual(len(self.upstream.requests), 1)

    def test_respond_async_is_accepted_and_the_webhook_gets_all_outputs(self):
        headers = {"Prefer": "respond-async", "Idempotency-Key": "async"}
        status, answer = self.say("lookup", "async", "A-3", headers)
        self.assertEqual((status, answer["text"], answer["outputStack"]), (202, "", []))
        self.upstream.open.set()
        self.assertEqual(self.delivered("async"), ["looking", "A-3: shipped"])
        status, answer = self.say("lookup", "async", "A-3", headers)
        self.assertEqual((status, answer["text"]), (200, "looking\nA-3: shipped"))


class Kills(DaemonCase):
    """The deadline of a message is half a minute away."""

    bundle = BUNDLE

    def setUp(self):
        self.upstream.open.clear()
        self.upstream.requests.clear()

    def tearDown(self):
        self.upstream.open.set()

    def test_a_kill_before_the_deadline_loses_no_output(self):
        with contextlib.ExitStack() as stack:
            pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(1))
            asked = pool.submit(self.say, "lookup", "killed client", "A-4")
            self.assertTrue(self.upstream.wait_for(1))
            self.daemon.kill()
            self.assertIsNotNone(asked.exception())
        self.upstream.open.set()
        self.daemon.start()
        self.daemon.wait_idle()
        self.assertEqual(self.texts("lookup", "killed client"), ["looking", "A-4: shipped"])


class Calls(DaemonCase):
    bundle = BUNDLE

    def setUp(self):
        self.upstream.open.set()
        self.upstream.requests.clear()

    def test_an_execution_continues_with_the_result_of_its_call(self):
        status, answer = self.say("lookup", "call", "A-1")
        self.assertEqual((status, answer["text"]), (200, "looking\nA-1: shipped"))
        path, headers, body = self.upstream.requests[0]
        self.assertEqual((path, body), ("/orders", b'{"id":"A-1"}'))
        self.assertEqual(headers["Authorization"], f"Bearer {CONNECTION_TOKEN}")
        self.assertIn("Idempotency-Key", headers)

    def test_retries_carry_the_same_key_and_a_failed_call_takes_the_error_branch(self):
        self.upstream.statuses = [503, 503]
        self.assertEqual(self.say("lookup", "fails", "A-2")[1]["text"], "looking\nfailed: status 503")
        keys = {headers["Idempotency-Key"] for _, headers, _ in self.upstream.requests}
        self.assertEqual((len(self.upstream.requests), len(keys)), (2, 1))

    def test_messages_during_a_pending_call_wait_in_order(self):
        self.upstream.open.clear()
        for text in "abc":
            self.assertEqual(self.inject("lookup", "busy", text=text)[0], 200)
        self.assertTrue(self.upstream.wait_for(1))
        self.upstream.open.set()
        self.daemon.wait_idle()
        self.assertEqual(self.texts("lookup", "busy"),
                         ["looking", "a: shipped", "looking", "b: shipped", "looking", "c: shipped"])

    def test_a_call_survives_a_kill(self):
        self.upstream.open.clear()
        self.assertEqual(self.inject("lookup", "killed", text="k")[0], 200)
        self.assertEqual(self.inject("lookup", "killed", text="l")[0], 200)
        self.assertTrue(self.upstream.wait_for(1))
        self.daemon.kill()
        self.upstream.open.set()
        self.daemon.start()
        self.daemon.wait_idle()
        self.assertEqual(self.texts("lookup", "killed"), ["looking", "k: shipped", "looking", "l: shipped"])
        keys = [headers["Idempotency-Key"] for _, headers, body in self.upstream.requests if b'"k"' in body]
        self.assertEqual(len(set(keys)), 1)

    def test_500_waiting_sessions_do_not_delay_50_others(self):
        """The 500 sessions wait for an upstream, and the daemon has a few workers."""
        self.upstream.open.clear()
        for number in range(500):
            self.assertEqual(self.inject("lookup", f"slow-{number}", text="x")[0], 200)
        for round in range(1, 4):
            for number in range(50):
                status, answer = self.say("echo", f"quick-{number}", "still there?")
                self.assertEqual((status, answer["text"]), (200, f"user {round}: still there?"))
        self.upstream.open.set()
        self.daemon.wait_idle()
        for number in range(500):
            self.assertEqual(self.texts("lookup", f"slow-{number}"), ["looking", "x: shipped"])

    def test_no_secret_is_in_the_log_or_in_clear_on_disk(self):
        self.say("lookup", "secrets", "A-9")
        self.daemon.request("POST", "/v2.0/endpoint/inject?api_key=" + self.key, {})
        secrets = [CONNECTION_TOKEN, self.key.split("_")[-1], self.daemon.environment["HOOK_SECRET"],
                   self.daemon.environment["CONVERSECTL_PASSWORD"]]
        files = [self.daemon.log_path, *(self.daemon.folder / "data").rglob("*")]
        for path in files:
            if path.is_file() and path.name != "lock":
                content = path.read_bytes()
                for secret in secrets:
                    self.assertNotIn(secret.encode(), content, path)


if __name__ == "__main__":
    unittest.main()
