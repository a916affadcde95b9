"""Traces: from the `traceparent` of a request to calls, webhooks and the collector of `telemetry.otlp.url`."""

import re
import sys
import unittest

from case import CONNECTION_TOKEN, DaemonCase
from collector import PYTHON, Collector

if not PYTHON.exists():
    print("\n!! SKIPPED: opentelemetry-proto is missing; run `tests/tools/fetch python`\n", file=sys.stderr)
    sys.exit(77)

BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
connections:
  - {name: crm, type: httpBearer, fields: {token: "${CRM_TOKEN}"}}
flows:
  - name: Lookup
    nodes:
      - httpRequest: {method: GET, url: "UPSTREAM/orders/path-of-a-user?key=hidden", connection: crm, retries: 1, storeIn: context.order}
      - say: "{{context.order.state}}"
  - {name: Echo, nodes: [{say: "{{input.text}}"}]}
endpoints:
  - {name: lookup, flow: Lookup, output: {webhook: {url: "${HOOK_URL}?token=hidden", secret: "${HOOK_SECRET}"}}}
  - {name: echo, flow: Echo, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
"""
TRACE = "4bf92f3577b34da6a3ce929d0e0e47"
CALLER = "00f067aa0ba902b7"


def traceparent(number, flags="01"):
    return {"traceparent": f"00-{TRACE}{number:02d}-{CALLER}-{flags}"}


class TraceCase(DaemonCase):
    bundle = BUNDLE
    otlp = ""

    @classmethod
    def setUpClass(cls):
        cls.collector = Collector()
        cls.addClassCleanup(cls.collector.stop)
        cls.settings = f"telemetry: {{otlp: {{url: '{cls.collector.url}', {cls.otlp}}}}}\n"
        super().setUpClass()

    def trace(self, number, spans):
        """Waits for the spans of a trace. Returns them."""
        trace = f"{TRACE}{number:02d}"
        self.assertTrue(self.collector.wait_for(lambda text: text.count(f'"{trace}"') >= spans), "the spans did not come")
        return [span for span in self.collector.spans() if span["trace"] == trace]

    def delivered(self, session):
        self.assertTrue(self.receiver.wait_for(lambda all: any(body["sessionId"] == session for _, _, body in all), 60))

    def dropped(self):
        connection = self.daemon.connect()
        self.addCleanup(connection.close)
        connection.port = self.daemon.ports["admin"]
        text = self.daemon.request("GET", "/metrics", connection=connection)[1]
        return int(re.search(r"^conversed_spans_dropped_total (\d+)$", text, re.MULTILINE)[1])


class Traces(TraceCase):
    otlp = "headers: [X-Collector-Key=key-of-the-collector]"

    def test_one_trace_leads_from_an_inject_to_its_webhook(self):
        self.upstream.statuses = [503]
        status, _, headers = self.inject("lookup", "traced", traceparent(1), text="private words")
        self.assertEqual(status, 200)
        self.delivered("traced")
        spans = self.trace(1, 8)
        by_name = {}
        for span in spans:
            self.assertLessEqual(span["begin"], span["end"])
            self.assertEqual(span["service"]["service.name"], "conversed")
            by_name.setdefault(span["name"], []).append(span)
        self.assertEqual({name: len(group) for name, group in by_name.items()},
                         {"POST /v2.0/endpoint/inject": 1, "wait": 2, "Turn Lookup": 2, "call": 2, "delivery": 1})
        (request,) = by_name["POST /v2.0/endpoint/inject"]
        self.assertEqual(request["parent"], CALLER)
        self.assertEqual(headers["traceparent"], f"00-{TRACE}01-{request['id']}-01")
        self.assertEqual({span["parent"] for span in spans if span is not request}, {request["id"]})
        self.assertEqual(len({span["id"] for span in spans}), len(spans))
        self.assertEqual(request["attributes"],
                         {"http.request.method": "POST", "http.route": "/v2.0/endpoint/inject",
                          "http.response.status_code": 200, "conversed.event.id": headers["X-Inject-Id"]})
        # Upstream and webhook got the spans of the tries as their parents.
        sent = [headers["traceparent"] for _, headers, _ in self.upstream.requests
                if f"{TRACE}01" in headers["traceparent"]]
        calls = sorted(by_name["call"], key=lambda span: span["begin"])
        self.assertEqual(sent, [f"00-{TRACE}01-{span['id']}-01" for span in calls])
        self.assertEqual([(span["error"], span["attributes"]["http.response.status_code"]) for span in calls],
                         [(True, 503), (False, 200)])
        self.assertEqual(calls[1]["attributes"]["http.request.resend_count"], 1)
        (delivery,) = by_name["delivery"]
        self.assertIn(f"00-{TRACE}01-{delivery['id']}-01", self.receiver.traceparents)
        self.assertEqual(delivery["attributes"]["server.address"], self.receiver.url.split("/")[2])

        told = b"".join(self.collector.bodies).decode()
        for secret in ("private words", "hidden", "path-of-a-user", CONNECTION_TOKEN, self.key, "user of traced"):
            self.assertNotIn(secret, told)
        self.assertEqual(self.collector.headers[0]["X-Collector-Key"], "key-of-the-collector")
        self.assertNotIn("key-of-the-collector", self.daemon.log_path.read_text())

    def test_a_trace_that_its_caller_does_not_sample_is_not_sent(self):
        self.assertEqual(self.inject("lookup", "unsampled", traceparent(2, "00"), text="x")[0], 200)
        self.delivered("unsampled")
        sent = [headers["traceparent"] for _, headers, _ in self.upstream.requests]
        self.assertTrue([value for value in sent if f"{TRACE}02" in value and value.endswith("-00")], sent)
        self.assertTrue(any(f"{TRACE}02" in value and value.endswith("-00") for value in self.receiver.traceparents))
        self.inject("echo", "sampled later", traceparent(3), text="x")
        self.trace(3, 4)
        self.assertFalse(self.collector.wait_for(lambda text: f"{TRACE}02" in text, 0))

    def test_requests_without_a_right_key_have_no_span(self):
        self.assertEqual(self.inject("echo", "stranger", {"X-API-Key": "wrong", **traceparent(6)}, text="x")[0], 401)
        self.inject("echo", "after the stranger", traceparent(7), text="x")
        self.trace(7, 4)
        self.assertFalse(self.collector.wait_for(lambda text: f"{TRACE}06" in text, 0))

    def test_a_users_message_has_the_span_of_its_request(self):
        status, _ = self.say("echo", "said", "Hi", traceparent(4))
        self.assertEqual(status, 200)
        spans = self.trace(4, 3)
        (request,) = [span for span in spans if span["parent"] == CALLER]
        self.assertEqual(request["name"], "POST /{URLToken}")
        self.assertEqual({span["parent"] for span in spans if span is not request}, {request["id"]})

    def test_the_wait_of_an_event_without_a_request_is_the_parent_of_its_spans(self):
        self.daemon.ctl("inject", "--endpoint", "echo", "--user", "u", "--session", "scheduled", "--in", "1s", "--text", "planned")
        self.delivered("scheduled")
        self.assertTrue(self.collector.wait_for(lambda text: any(
            output["output"]["traceId"] in text for _, _, output in self.receiver.deliveries
            if output["sessionId"] == "scheduled")))
        trace = next(body["output"]["traceId"] for _, _, body in self.receiver.deliveries if body["sessionId"] == "scheduled")
        self.assertTrue(self.collector.wait_for(lambda text: text.count(f'"{trace}"') >= 3))
        spans = {span["name"]: span for span in self.collector.spans() if span["trace"] == trace}
        self.assertEqual(spans["wait"]["parent"], "")
        self.assertEqual(spans["Turn Echo"]["parent"], spans["wait"]["id"])
        self.assertEqual(spans["delivery"]["parent"], spans["wait"]["id"])


class Sampling(TraceCase):
    otlp = "sample: 0"

    def test_only_traces_of_sampling_callers_are_sent(self):
        self.assertEqual(self.inject("echo", "ours", text="x")[0], 200)
        self.delivered("ours")
        self.assertTrue(self.receiver.traceparents[-1].endswith("-00"))
        self.inject("echo", "theirs", traceparent(5), text="x")
        spans = self.trace(5, 4)
        self.assertEqual(len(spans), len(self.collector.spans()))


class WithoutCollector(DaemonCase):
    bundle = BUNDLE

    def test_only_traces_of_sampling_callers_carry_the_flag(self):
        for headers, flags in ((None, "-00"), (traceparent(8), "-01")):
            session = f"without a collector {flags}"
            self.assertEqual(self.inject("echo", session, headers, text="x")[0], 200)
            self.assertTrue(self.receiver.wait_for(lambda all: any(body["sessionId"] == session for _, _, body in all), 60))
            self.assertTrue(self.receiver.traceparents[-1].endswith(flags))


class LateCollector(TraceCase):
    def test_a_collector_that_hangs_delays_nothing_and_gets_the_spans_later(self):
        self.collector.open.clear()
        for number in range(10, 30):
            self.assertEqual(self.inject("echo", f"hanging {number}", traceparent(number), text="x")[0], 200)
            self.delivered(f"hanging {number}")
        self.collector.open.set()
        for number in (10, 29):
            self.trace(number, 4)
        self.assertEqual(self.dropped(), 0)

    def test_spans_that_the_collector_refuses_are_dropped_and_counted(self):
        before = self.dropped()
        self.collector.status = 400
        self.addCleanup(setattr, self.collector, "status", 200)
        self.assertEqual(self.inject("echo", "refused", traceparent(30), text="x")[0], 200)
        self.delivered("refused")
        self.trace(30, 4)
        self.collector.status = 200
        self.inject("echo", "taken", traceparent(32), text="x")
        self.trace(32, 4)  # in a later batch, hence after the count
        self.assertEqual(self.dropped() - before, 4)

    def test_a_collector_that_is_busy_gets_the_spans_again(self):
        self.collector.status = 503
        self.addCleanup(setattr, self.collector, "status", 200)
        self.assertEqual(self.inject("echo", "busy", traceparent(31), text="x")[0], 200)
        self.delivered("busy")
        self.trace(31, 4)
        self.collector.status = 200
        self.assertGreaterEqual(len({span["id"] for span in self.trace(31, 8)}), 4)


class Tracestate(DaemonCase):
    bundle = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - name: Way
    nodes:
      - {id: near, say: near}
      - {id: order, httpRequest: {method: GET, url: "UPSTREAM/order", headers: {tracestate: of=the-flow}, storeIn: context.order}}
      - {id: rest, sleep: {for: 1s}}
      - {id: later, followUp: {after: 1s, text: later}}
      - {id: where, question: {text: "Where to?", storeIn: context.where, timeout: 1s, onTimeout: [{say: silent}]}}
endpoints:
  - {name: way, flow: Way, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
"""

    def texts(self, session):
        """The texts of the session that were delivered, with their tracestates, in order."""
        with self.receiver.lock:
            return [(body["output"]["text"], state) for (_, _, body), state in
                    zip(self.receiver.deliveries, self.receiver.tracestates) if body["sessionId"] == session]

    def way(self, session, headers):
        """Injects an event, and waits for all that follows from it. Returns the tracestates that its call and outputs had."""
        self.upstream.requests.clear()
        self.assertEqual(self.inject("way", session, headers, text="x")[0], 200)
        self.assertTrue(self.receiver.wait_for(
            lambda all: sum(body["sessionId"] == session for _, _, body in all) == 4, 60), self.texts(session))
        self.assertEqual({text for text, _ in self.texts(session)}, {"near", "Where to?", "later", "silent"})
        ((_, called, _),) = self.upstream.requests
        return {called.get("tracestate")} | {state for _, state in self.texts(session)}

    def test_it_goes_unchanged_to_calls_and_webhooks_also_after_timers_and_a_restart(self):
        state = "rojo=00f067aa0ba902b7, congo=t61rcWkgMzE"
        self.upstream.requests.clear()
        self.upstream.open.clear()
        self.addCleanup(self.upstream.open.set)
        self.assertEqual(self.inject("way", "restarted", {**traceparent(40), "tracestate": state}, text="x")[0], 200)
        self.assertTrue(self.upstream.wait_for(1))
        self.daemon.kill()
        self.upstream.open.set()
        self.daemon.start()
        self.assertTrue(self.receiver.wait_for(
            lambda all: {body["output"]["text"] for _, _, body in all if body["sessionId"] == "restarted"}
            == {"near", "Where to?", "later", "silent"}, 60), self.texts("restarted"))
        self.assertEqual({state for _, state in self.texts("restarted")}, {state})
        self.assertEqual({headers["tracestate"] for _, headers, _ in self.upstream.requests}, {state})

    def test_it_is_dropped_if_it_is_malformed_or_has_no_traceparent(self):
        self.assertEqual(self.way("malformed", {**traceparent(41), "tracestate": "A=1"}), {"of=the-flow", None})
        self.assertEqual(self.way("alone", {"tracestate": "congo=1"}), {"of=the-flow", None})


class NoCollector(DaemonCase):
    bundle = BUNDLE
    settings = "telemetry: {otlp: {url: 'http://127.0.0.1:1/v1/traces'}}\n"

    def test_a_daemon_without_its_collector_delivers_and_stops(self):
        self.assertEqual(self.inject("echo", "alone", text="x")[0], 200)
        self.assertTrue(self.receiver.wait_for(lambda all: any(body["sessionId"] == "alone" for _, _, body in all), 60))
        self.assertEqual(self.daemon.terminate(), 0)


if __name__ == "__main__":
    unittest.main()
