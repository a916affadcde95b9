"""Two daemons on one log and one store: sessions move between them when a daemon joins, leaves, dies or returns."""

import os
import signal
import sys
import threading
import unittest

from case import DaemonCase, cluster

BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - {name: Echo, nodes: [{say: "{{input.text}}"}]}
  - name: Lookup
    nodes:
      - httpRequest: {method: POST, url: "UPSTREAM/orders", body: {id: "{{input.text}}"}, storeIn: context.order,
                      timeout: 60s}
      - say: "{{input.text}}: {{context.order.state}}"
endpoints:
  - {name: echo, flow: Echo, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
  - {name: lookup, flow: Lookup, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
"""


class TwoDaemons(DaemonCase):
    bundle = BUNDLE

    def setUp(self):
        self.accepted = {}
        self.sessions = [f"{self.id()} {number}" for number in range(24)]

    def join(self, name):
        """Starts another daemon on the same log and store, with the same master key."""
        other = self.beside(name)
        self.addCleanup(other.kill)
        self.assertTrue(other.start())
        return other

    def owned(self, daemon):
        """Returns the number of partitions in the daemon's newest log line about them."""
        lines = [line for line in daemon.log_path.read_text().splitlines() if '"owned":' in line]
        return int(lines[-1].split('"owned":')[1].split("}")[0].split(",")[0]) if lines else 0

    def wait_owned(self, daemon, wanted):
        while not wanted(self.owned(daemon)):
            self.assertFalse(daemon.wait_end(0.1), "the daemon ended")

    def feed(self, endpoint, step, by=None, until_accepted=False):
        """Injects one event into each session. Checks that the daemon accepts all of them. `until_accepted`: sends an
        inject again after 503, which means that nothing was done."""
        for session in self.sessions:
            text = f"{step}"
            message = {"URLToken": self.tokens[endpoint], "userId": f"user of {session}", "sessionId": session,
                       "text": text}
            def inject():
                return (by or self.daemon).request("POST", "/v2.0/endpoint/inject", message, {"X-API-Key": self.key})

            status, answer, _ = inject()
            while until_accepted and status == 503:
                threading.Event().wait(0.1)
                status, answer, _ = inject()
            self.assertEqual(status, 200, answer)
            self.accepted.setdefault(session, []).append(text)

    def assert_all_once_and_in_order(self, endpoint, form="{}"):
        """Checks all accepted events in the store, and at the webhook by the first arrival of each output."""
        wanted = {session: [form.format(text) for text in texts] for session, texts in self.accepted.items()}
        self.assertTrue(self.receiver.wait_for(lambda all: len(self.arrivals(all)[1]) >= sum(
            len(texts) for texts in wanted.values()), 120))
        for session, texts in wanted.items():
            self.assertEqual(self.texts(endpoint, session), texts, session)
        self.assertEqual(self.arrivals(self.receiver.deliveries)[0], wanted)

    def arrivals(self, deliveries):
        texts, seen = {}, set()
        for webhook_id, _, body in deliveries:
            if body["sessionId"] in self.accepted and webhook_id not in seen:
                seen.add(webhook_id)
                texts.setdefault(body["sessionId"], []).append(body["output"]["text"])
        return texts, seen


class Moves(TwoDaemons):
    def test_partitions_are_shared_and_return_after_a_stop(self):
        self.feed("echo", "alone")
        other = self.join("joins")
        self.wait_owned(other, lambda count: count > 0)
        self.wait_owned(self.daemon, lambda count: count < 8)
        self.feed("echo", "two")
        self.feed("echo", "by the other", other)
        self.assert_all_once_and_in_order("echo")
        # After a clean stop the partitions need no recovery.
        self.assertEqual(other.terminate(), 0)
        self.feed("echo", "while one has left")
        self.wait_owned(self.daemon, lambda count: count == 8)
        self.assert_all_once_and_in_order("echo")
        self.assertNotIn("left behind by a crash", self.daemon.log_path.read_text())

    def test_the_other_daemon_continues_the_work_of_a_killed_one(self):
        other = self.join("is killed")
        self.wait_owned(other, lambda count: count > 0)
        self.upstream.open.clear()
        self.addCleanup(self.upstream.open.set)
        self.feed("lookup", "a")
        self.feed("lookup", "b", other)  # these events wait in the inboxes
        other.kill()
        self.wait_owned(self.daemon, lambda count: count == 8)
        self.upstream.open.set()
        self.assert_all_once_and_in_order("lookup", "{}: shipped")
        self.assertIn("left behind by a crash", self.daemon.log_path.read_text())


class Zombies(TwoDaemons):
    def test_a_suspended_daemon_has_no_second_effect_and_rejoins(self):
        other = self.join("is stopped")
        for round in range(2):
            self.wait_owned(other, lambda count: 0 < count < 8)
            self.wait_owned(self.daemon, lambda count: 0 < count < 8)
            self.feed("echo", f"{round}: before")
            other.process.send_signal(signal.SIGSTOP)
            self.feed("echo", f"{round}: while it is stopped")
            self.wait_owned(self.daemon, lambda count: count == 8)
            other.process.send_signal(signal.SIGCONT)
            # Its requests to the broker may have timed out meanwhile.
            self.feed("echo", f"{round}: after", other, until_accepted=True)
            self.wait_owned(self.daemon, lambda count: count < 8)
            self.feed("echo", f"{round}: at last")
            self.assert_all_once_and_in_order("echo")


def main():
    if "CONVERSED_TEST_KAFKA" not in os.environ:
        return cluster.main([sys.executable, "-B", *sys.argv])
    unittest.main()


if __name__ == "__main__":
    sys.exit(main())
