"""Two daemons on one Kafka and one PostgreSQL: clients are answered wherever they ask, whoever runs their conversations."""

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
LIMIT = 1_000  # sessions until some are the other daemon's: each is that with even odds
REMEMBER_REPLIES = r"""
CREATE TABLE crossed (session_id text);
CREATE FUNCTION remember() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO crossed VALUES (split_part(NEW.session_key, chr(31), 4)); RETURN NULL; END $$;
CREATE TRIGGER remember AFTER INSERT ON replies FOR EACH ROW EXECUTE FUNCTION remember();
"""


class ClusterCase(PostgresCase):
    bundle = BUNDLE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.run_sql(REMEMBER_REPLIES)
        cls.other = cls.beside("other")
        cls.other.start()

    def sessions_elsewhere(self, endpoint, name, count):
        """New sessions whose messages to the first daemon the other one runs: those leave a reply."""
        found = []
        for number in range(LIMIT):
            session = f"{name} {number}"
            self.assertEqual(self.say(endpoint, session, "hello")[0], 200)
            if self.server.run_sql(f"SELECT count(*) FROM crossed WHERE session_id = '{session}'") != "0":
                found.append(session)
            if len(found) == count:
                return found
        self.fail("the other daemon runs nothing")

    @staticmethod
    def sent(deliveries, session):
        """What the webhook got of it, in order."""
        return [body["output"]["text"] for _, _, body in deliveries if body["sessionId"] == session]

    def assert_sent(self, session, texts):
        self.receiver.wait_for(lambda deliveries: len(self.sent(deliveries, session)) >= len(texts), 120)
        self.assertEqual(self.sent(self.receiver.deliveries, session), texts)


class Answers(ClusterCase):
    def test_whoever_runs_the_turn_the_client_is_answered_and_the_webhook_has_nothing(self):
        sessions = self.sessions_elsewhere("echo", "answered", 5)
        for session in sessions:
            for text in ("first", "second"):
                self.assertEqual(self.say("echo", session, text)[1]["text"], text)
            # Behind all of these: what the webhook gets, it has by then.
            self.assertEqual(self.inject("echo", session, text="injected")[0], 200)
            self.assert_sent(session, ["injected"])

    def test_a_call_of_the_execution_changes_nothing(self):
        session, = self.sessions_elsewhere("lookup", "called", 1)
        status, body = self.say("lookup", session, "shoes")
        self.assertEqual((status, body["text"]), (200, "looking for shoes\nshoes: shipped"))

    def test_a_keyed_message_repeated_elsewhere_has_one_effect_and_one_answer(self):
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


class Deaths(ClusterCase):
    def test_what_a_client_of_a_dead_daemon_was_to_get_is_the_webhooks(self):
        session, = self.sessions_elsewhere("lookup", "left", 1)
        calls = len(self.upstream.requests)
        self.upstream.open.clear()
        seen = threading.Event()

        def ask():
            try:
                self.say("lookup", session, "shoes")
            except NO_ANSWER:
                seen.set()

        client = threading.Thread(target=ask)
        client.start()
        self.assertTrue(self.upstream.wait_for(calls + 1))
        self.daemon.kill()
        client.join()
        self.assertTrue(seen.is_set(), "it was answered")
        self.upstream.open.set()
        self.assert_sent(session, ["looking for shoes", "shoes: shipped"])


if __name__ == "__main__":
    cluster_main()
