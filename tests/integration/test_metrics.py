"""The tests compare /metrics with the known effects of a few requests."""

import re
import socket
import unittest

from case import DaemonCase

BUNDLE = """
conversed: 1
project: {name: Metrics, locales: [en]}
flows: [{name: Echo, nodes: [{say: "{{input.text}}"}]}]
endpoints:
  - {name: echo, flow: Echo, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
  - {name: quiet, flow: Echo}
"""


class Metrics(DaemonCase):
    bundle = BUNDLE

    def samples(self):
        """Returns {'name{labels}': value}; a missing metric is 0."""
        status, text, headers = self.daemon.request("GET", "/metrics", connection=self.admin())
        self.assertEqual(status, 200)
        self.assertTrue(headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        return {name: float(value) for name, value in re.findall(r"^(conversed_[^ ]+) (\S+)$", text, re.MULTILINE)}

    def admin(self):
        connection = self.daemon.connect()
        connection.port = self.daemon.ports["admin"]
        self.addCleanup(connection.close)
        return connection

    def changes(self, work):
        """Runs `work` and waits until the daemon is idle. Returns a function from a sample's name to its growth."""
        before = self.samples()
        work()
        self.daemon.wait_idle()
        after = self.samples()
        return lambda name: after.get(name, 0) - before.get(name, 0)

    def expect(self, grown, **counts):
        for name, count in counts.items():
            self.assertEqual(grown(f"conversed_{name}"), count, name)

    def test_an_accepted_inject_its_turn_and_its_delivery_are_counted(self):
        def work():
            self.assertEqual(self.inject("echo", "counted", text="one")[0], 200)
            self.assertTrue(self.receiver.wait_for(
                lambda all: any(body["sessionId"] == "counted" for _, _, body in all), 30))

        grown = self.changes(work)
        self.expect(grown, injects_accepted_total=1, accept_seconds_count=1, events_appended_total=1, turns_total=1,
                    turn_seconds_count=1, delivery_seconds_count=1, output_age_seconds_count=1, dead_letters_total=0)
        self.assertEqual(grown('conversed_deliveries_total{outcome="delivered"}'), 1)
        (endpoint,) = [each["_id"] for each in self.daemon.ctl("endpoints", "list")["items"] if each["name"] == "echo"]
        (flow,) = [each["_id"] for each in self.daemon.ctl("flows", "list")["items"]]
        (organisation,) = [each["_id"] for each in self.daemon.ctl("organisation", "list")["items"]]
        for name in (f'endpoint_events_total{{endpoint="{endpoint}"}}',
                     f'endpoint_deliveries_total{{endpoint="{endpoint}",outcome="delivered"}}',
                     f'flow_turns_total{{flow="{flow}"}}', f'organisation_events_total{{organisation="{organisation}"}}',
                     f'organisation_injects_total{{organisation="{organisation}"}}', 'event_wait_seconds_count{reason="log"}'):
            self.assertEqual(grown("conversed_" + name), 1, name)
        self.assertGreater(grown("conversed_accept_seconds_sum"), 0)
        self.assertGreater(grown("conversed_turn_seconds_sum"), 0)
        self.assertGreaterEqual(grown("conversed_commits_total"), 1)
        self.assertEqual(grown("conversed_session_commits_total"), 1)
        self.assertGreaterEqual(grown('conversed_http_requests_total{status="200"}'), 1)

    def test_a_refused_inject_is_counted_by_its_status_and_as_nothing_else(self):
        message = {"URLToken": self.tokens["quiet"], "userId": "u", "sessionId": "s", "text": "x"}

        def inject(status, body, key=self.key):
            answer = self.daemon.request("POST", "/v2.0/endpoint/inject", body, {"X-API-Key": key})
            self.assertEqual(answer[0], status, answer)

        def work():
            inject(401, message, "nobody's")
            inject(401, message, "")
            inject(404, {**message, "URLToken": "0" * 64})
            inject(400, {"text": "to nobody"})

        grown = self.changes(work)
        for status, count in ((400, 1), (401, 2), (404, 1)):
            self.assertEqual(grown(f'conversed_injects_refused_total{{status="{status}"}}'), count, status)
            self.assertEqual(grown(f'conversed_http_requests_total{{status="{status}"}}'), count, status)
        self.expect(grown, injects_accepted_total=0, accept_seconds_count=0, events_appended_total=0, turns_total=0,
                    turn_seconds_count=0)

    def test_a_repeated_inject_is_answered_twice_and_appended_once(self):
        key = {"Idempotency-Key": "metrics"}

        def work():
            for _ in range(2):
                self.assertEqual(self.inject("quiet", "repeated", key, text="once")[0], 200)

        self.expect(self.changes(work), injects_accepted_total=2, events_appended_total=1, turns_total=1)

    def test_a_users_message_is_counted_as_a_turn_and_not_as_an_inject(self):
        grown = self.changes(lambda: self.assertEqual(self.say("quiet", "chat", "Hi")[0], 200))
        self.expect(grown, turns_total=1, turn_seconds_count=1, injects_accepted_total=0, accept_seconds_count=0)

    def test_malformed_requests_are_counted(self):
        def work():
            with socket.create_connection(("127.0.0.1", self.daemon.ports["api"]), 30) as client:
                client.sendall(b"no request\r\n\r\n")
                self.assertIn(b" 400 ", client.recv(65536))

        grown = self.changes(work)
        self.assertEqual(grown('conversed_http_requests_total{status="400"}'), 1)
        self.assertEqual(grown('conversed_injects_refused_total{status="400"}'), 0)

    def test_gauges_of_an_idle_daemon_show_its_health(self):
        self.daemon.wait_idle()
        samples = self.samples()
        for name, value in (("ready", 1), ("store_healthy", 1), ("log_healthy", 1), ("log_lag", 0),
                            ("deliveries_pending", 0), ("calls_in_flight", 0), ("dead_letters_waiting", 0)):
            self.assertEqual(samples[f"conversed_{name}"], value, name)
        for reason in ("behindEvents", "behindJobs", "deliveryFailing", "endpointPaused", "deadLetter", "storeDown", "logDown"):
            self.assertEqual(samples[f'conversed_waiting_seconds{{reason="{reason}"}}'], 0, reason)


if __name__ == "__main__":
    unittest.main()
