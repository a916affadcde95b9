"""Two daemons on one Kafka and one PostgreSQL: a daemon answers its client although the other daemon runs the Turn."""

import concurrent.futures
import threading

from kafka_case import NO_ANSWER, PostgresCase, cluster_main

BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - name: Echo
    nodes:
      - say: "{{input.text}}"
  - name: Lookup
    nodes:
      - say: "looking for {{input.text}}"
      - httpRequest: {method: POST, url: "UPSTREAM/orders", body: {id: "{{input.text}}"}, storeIn: context.order,
                      timeout: 60s}
      - say: "{{input.text}}: {{context.order.state}}"
endpoints:
  - {name: echo, flow: Echo, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
  - {name: lookup, flow: Lookup, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
"""
LIMIT = 1_000  # new sessions at most; the other daemon owns each with even odds


class ClusterCase(PostgresCase):
    bundle = BUNDLE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.own_name = cls.daemon.full_status()["members"][0]["name"]
        cls.other = cls.beside("other")
        cls.other.start()

    def partitions_elsewhere(self):
        """Waits until both daemons own partitions. Returns the partitions of the other daemon."""
        for _ in range(1200):
            parts = {member["name"]: member["partitions"] for member in self.daemon.full_status()["members"]}
            if len(parts) == 2 and all(parts.values()):
                return next(partitions for name, partitions in parts.items() if name != self.own_name)
            self.assertFalse(self.daemon.wait_end(0.05), "the daemon ended")
        self.fail(f"the partitions are not shared: {parts}")

    def sessions_elsewhere(self, endpoint, name, count):
        """Begins sessions in partitions of the other daemon, by messages to the first daemon. Returns their names."""
        theirs = self.partitions_elsewhere()
        return self.sessions_where(endpoint, name, count, lambda partition: partition in theirs)

    def sessions_here(self, endpoint, name, count):
        theirs = self.partitions_elsewhere()
        return self.sessions_where(endpoint, name, count, lambda partition: partition not in theirs)

    def sessions_where(self, endpoint, name, count, wanted):
        found = []
        for number in range(LIMIT):
            session = f"{name} {number}"
            self.assertEqual(self.say(endpoint, session, "hello")[0], 200)
            partition = self.server.run_sql(
                f"SELECT position_partition FROM sessions WHERE split_part(key, chr(31), 4) = '{session}'")
            if wanted(int(partition)):
                found.append(session)
            if len(found) == count:
                return found
        self.fail("no session is in a wanted partition")

    @staticmethod
    def sent(deliveries, session):
        """Returns the texts that the webhook got for this session, in order."""
        return [body["output"]["text"] for _, _, body in deliveries if body["sessionId"] == session]

    def assert_sent(self, session, texts):
        self.receiver.wait_for(lambda deliveries: len(self.sent(deliveries, session)) >= len(texts), 120)
        self.assertEqual(self.sent(self.receiver.deliveries, session), texts)


class Answers(ClusterCase):
    def test_the_client_gets_the_outputs_of_the_other_daemon_and_the_webhook_gets_none(self):
        sessions = self.sessions_elsewhere("echo", "answered", 5)
        for session in sessions:
            for text in ("first", "second"):
                self.assertEqual(self.say("echo", session, text)[1]["text"], text)
            # Deliveries of a session are in order: after this output the webhook has got all earlier ones.
            self.assertEqual(self.inject("echo", session, text="injected")[0], 200)
            self.assert_sent(session, ["injected"])

    def test_the_client_gets_the_outputs_before_and_after_a_call(self):
        session, = self.sessions_elsewhere("lookup", "called", 1)
        status, body = self.say("lookup", session, "shoes")
        self.assertEqual((status, body["text"]), (200, "looking for shoes\nshoes: shipped"))

    def test_a_keyed_message_repeated_at_both_daemons_has_one_effect_and_one_answer(self):
        session, = self.sessions_elsewhere("lookup", "keyed", 1)
        key = {"Idempotency-Key": "one"}
        message = {"userId": f"user of {session}", "sessionId": session, "text": "once"}
        calls = len(self.upstream.requests)
        self.upstream.open.clear()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            ask = [pool.submit(self.daemon.request, "POST", f"/{self.tokens['lookup']}", message, key)]
            self.assertTrue(self.upstream.wait_for(calls + 1))
            ask += [pool.submit(daemon.request, "POST", f"/{self.tokens['lookup']}", message, key)
                    for daemon in (self.other, self.daemon, self.other)]
            self.upstream.open.set()
            answers = [each.result()[:2] for each in ask]
        for status, body in answers:
            self.assertEqual((status, body.get("text")), (200, "looking for once\nonce: shipped"), body)
        self.assertEqual([text for text in self.texts("lookup", session) if "once" in text],
                         ["looking for once", "once: shipped"])


class Stops(ClusterCase):
    def test_the_first_client_is_answered_although_the_daemon_of_a_repeat_stops(self):
        session, = self.sessions_here("lookup", "first", 1)
        ask = ("POST", f"/{self.tokens['lookup']}", {"userId": f"user of {session}", "sessionId": session, "text": "once"},
               {"Idempotency-Key": "one"})
        calls = len(self.upstream.requests)
        self.upstream.open.clear()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            first = pool.submit(self.daemon.request, *ask)
            self.assertTrue(self.upstream.wait_for(calls + 1))
            repeat = pool.submit(self.other.request, *ask)
            while self.other.full_status()["counts"]["waitingForAnswers"] == 0:
                self.assertFalse(repeat.done(), "the repeat did not wait for the first answer")
            self.other.terminate()
            self.assertEqual(repeat.result()[0], 503)
            self.upstream.open.set()
            status, body = first.result()[:2]
        self.assertEqual((status, body["text"]), (200, "looking for once\nonce: shipped"))


class Deaths(ClusterCase):
    cluster_settings = "api: {turn_timeout: 4s}\n"

    def ask_and_lose_the_answer(self, name):
        """Sends a message to the first daemon and kills it before the call gets its result. Returns the session, which the
        other daemon runs."""
        session, = self.sessions_elsewhere("lookup", name, 1)
        calls = len(self.upstream.requests)
        self.upstream.open.clear()
        seen = threading.Event()

        def ask():
            try:
                self.say("lookup", session, "shoes", {"Idempotency-Key": name})
            except NO_ANSWER:
                seen.set()

        client = threading.Thread(target=ask)
        client.start()
        self.assertTrue(self.upstream.wait_for(calls + 1))
        self.daemon.kill()
        client.join()
        self.assertTrue(seen.is_set(), "the killed daemon had answered")
        return session

    def test_a_repeat_after_a_daemons_death_is_answered_and_the_webhook_gets_outputs_after_the_deadline(self):
        session = self.ask_and_lose_the_answer("left")
        message = {"userId": f"user of {session}", "sessionId": session, "text": "shoes"}
        ask = ("POST", f"/{self.tokens['lookup']}", message, {"Idempotency-Key": "left"})
        status, body = self.other.request(*ask)[:2]  # answered at the deadline of the first request
        self.assertEqual((status, body["text"]), (202, "looking for shoes"))
        self.upstream.open.set()
        self.assert_sent(session, ["shoes: shipped"])
        status, body = self.other.request(*ask)[:2]
        self.assertEqual((status, body["text"]), (200, "looking for shoes\nshoes: shipped"))


if __name__ == "__main__":
    cluster_main()
