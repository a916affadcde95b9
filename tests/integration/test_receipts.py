"""The receipt of an event shows its whole way, with a cause for each wait, and never a step whose commit was lost."""

import base64
import http.client
import http.server
import threading
import unittest
import urllib.parse

from case import DaemonCase, daemon_process

BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - {name: Echo, nodes: [{addToContext: {heard: "{{input.text}}"}}, {id: end, say: "{{input.text}}"}]}
  - name: Lookup
    nodes:
      - httpRequest: {method: GET, url: "UPSTREAM/orders?key=hidden", retries: 3, storeIn: context.order}
      - say: "{{context.order.state}}"
  - {name: Loop, nodes: [{id: again, goTo: again}]}
endpoints:
  - {name: echo, flow: Echo}
  - {name: hooked, flow: Echo, output: {webhook: {url: "FLAKY", secret: "${HOOK_SECRET}"}}}
  - {name: lookup, flow: Lookup}
  - {name: loop, flow: Loop}
"""


class Flaky:
    """A webhook on loopback that answers with the next of `statuses`, and with 204 when there is none."""

    def __init__(self):
        self.statuses = []
        flaky = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                status = flaky.statuses.pop(0) if flaky.statuses else 204
                body = b"" if status == 204 else "kein Platz\n\x07mehr".encode() + b"x" * 500
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook?token=hidden"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class ReceiptCase(DaemonCase):
    @classmethod
    def setUpClass(cls):
        cls.flaky = Flaky()
        cls.addClassCleanup(cls.flaky.stop)
        cls.bundle = BUNDLE.replace("FLAKY", cls.flaky.url)
        super().setUpClass()

    def accepted(self, endpoint, session, headers=None, **body):
        status, _, answered = self.inject(endpoint, session, headers, **body)
        self.assertEqual(status, 200)
        return answered["X-Inject-Id"]

    def ask(self, name):
        return self.daemon.request("GET", "/management/receipts/" + urllib.parse.quote(name, safe=""), basic=True)

    def receipt(self, name):
        status, receipt, _ = self.ask(name)
        self.assertEqual(status, 200, receipt)
        return receipt

    def ended(self, name):
        """Waits until the event is finished. Returns its receipt."""
        for _ in range(1200):
            status, receipt, _ = self.ask(name)
            if status == 200 and receipt["state"] == "ended":
                return receipt
            self.assertFalse(self.daemon.wait_end(0.05), "the daemon ended")
        self.fail(f"{name} was not finished: {receipt}")

    def steps(self, receipt, what):
        return [step for step in receipt["steps"] if step["what"] == what]

    def causes(self, receipt):
        return [step.get("cause") for step in self.steps(receipt, "waited")]


class Receipts(ReceiptCase):
    def test_an_inject_has_a_turn_and_a_delivery(self):
        event = self.accepted("hooked", "simple", text="hello")
        receipt = self.ended(event)
        self.assertEqual((receipt["_id"], receipt["userId"], receipt["sessionId"]), (event, "user of simple", "simple"))
        (accepted,) = self.steps(receipt, "accepted")
        self.assertEqual((accepted["type"], accepted["text"]), ("inject", "hello"))
        self.assertTrue(accepted["daemon"])
        self.assertTrue(accepted["by"])
        self.assertEqual(accepted["sender"], daemon_process.EMAIL)
        (turn,) = self.steps(receipt, "turn")
        self.assertEqual((turn["flow"], turn["version"], turn["nodes"]), ("Echo", 1, ["nodes[0]", "end"]))
        self.assertEqual([(change["path"], change["value"]) for change in turn["changes"]], [("context.heard", "hello")])
        self.assertEqual([output["_id"] for output in turn["outputs"]], [f"{event}-1"])
        (delivery,) = self.steps(receipt, "delivery")
        self.assertEqual((delivery["status"], delivery["seq"], delivery["try"]), (204, 1, 1))

    def test_the_steps_leave_no_gap(self):
        event = self.accepted("hooked", "gapless", text="hello")
        steps = self.ended(event)["steps"]
        end = steps[0]["fromMs"]
        for step in steps:
            self.assertGreaterEqual(step["fromMs"], steps[0]["fromMs"])
            self.assertLessEqual(step["fromMs"], end + 1, steps)
            end = max(end, step["fromMs"] + step["micros"] // 1000)

    def test_a_message_is_found_by_its_trace_and_its_outputs(self):
        trace = "4bf92f3577b34da6a3ce929d0e0e4736"
        status, answer = self.say("echo", "traced", "hi", {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
        self.assertEqual((status, answer["text"]), (200, "hi"))
        receipt = self.ended(trace)
        self.assertEqual(receipt["traceId"], trace)
        self.assertEqual(self.steps(receipt, "accepted")[0]["type"], "userMessage")
        self.assertEqual(self.receipt(receipt["_id"] + "-1")["_id"], receipt["_id"])
        self.say("echo", "traced", "again", {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
        others = self.receipt(trace)["others"]
        self.assertEqual(len(others), 1)
        self.assertEqual(self.receipt(others[0])["previous"], receipt["_id"])

    def test_an_event_is_found_by_its_idempotency_key(self):
        key = "order 4711 / paid?"
        event = self.accepted("echo", "keyed", {"Idempotency-Key": key}, text="hi")
        self.ended(event)
        self.assertEqual(self.receipt(key)["_id"], event)

    def test_a_call_shows_each_of_its_tries(self):
        self.upstream.statuses[:] = [503, 503]
        event = self.accepted("lookup", "called", text="4711")
        receipt = self.ended(event)
        calls = self.steps(receipt, "call")
        self.assertEqual([(call["try"], call["status"]) for call in calls], [(1, 503), (2, 503), (3, 200)])
        for call in calls:
            self.assertEqual(call["to"], self.upstream.url.removeprefix("http://"))
            self.assertNotIn("hidden", str(call))
        self.assertEqual(["next" in call for call in calls], [True, True, False])
        self.assertEqual(self.causes(receipt).count("retry"), 2)
        self.assertEqual([turn.get("event") for turn in self.steps(receipt, "turn")], [None, "callResult"])

    def test_an_open_call_holds_others_up_and_says_so(self):
        self.upstream.open.clear()
        self.addCleanup(self.upstream.open.set)
        first = self.accepted("lookup", "held", text="4711")
        self.assertTrue(self.upstream.wait_for(1))
        second = self.accepted("lookup", "held", text="4711")
        for _ in range(1200):
            if self.ask(second)[0] == 200:
                break
            self.assertFalse(self.daemon.wait_end(0.05), "the daemon ended")
        waits = self.receipt(second)
        self.assertEqual((waits["state"], waits["steps"][-1]["cause"]), ("open", "session"))
        self.assertEqual(waits["steps"][-1]["blockedBy"], f"{first}-c1")
        self.assertIsNone(waits["steps"][-1]["micros"])
        holds = self.receipt(first)
        self.assertEqual((holds["state"], holds["othersWaiting"], holds["steps"][-1]["cause"]), ("open", 1, "call"))
        self.upstream.open.set()
        self.assertEqual(self.ended(first)["othersWaiting"], 0)
        self.ended(second)

    def test_a_webhook_that_answers_500_twice_is_shown_with_its_answers(self):
        self.flaky.statuses[:] = [500, 500]
        event = self.accepted("hooked", "flaky", text="hello")
        receipt = self.ended(event)
        tries = self.steps(receipt, "delivery")
        self.assertEqual([(each["try"], each["status"]) for each in tries], [(1, 500), (2, 500), (3, 204)])
        for each in tries[:2]:
            self.assertTrue(each["answer"].startswith("kein Platz  mehrxxx"), each)
            self.assertEqual(len(each["answer"]), 200)
            self.assertGreater(each["next"], each["fromMs"])
        self.assertEqual(self.causes(receipt).count("retry"), 2)
        self.assertNotIn("hidden", str(receipt))

    def test_a_dead_letter_is_named_with_its_reason(self):
        event = self.accepted("loop", "lost", text="round")
        (turn,) = self.steps(self.ended(event), "turn")
        letter = self.daemon.ctl("deadletters", "show", turn["deadLetter"])
        self.assertEqual(letter["eventId"], event)
        self.assertIn(turn["reason"], letter["reason"])

    def test_a_user_of_another_organisation_finds_nothing(self):
        event = self.accepted("echo", "own", text="hi")
        self.ended(event)
        self.daemon.ctl("organisation", "add", "Other", "--admin", "far@other.example", "--password-stdin",
                        input="other secret 42")
        status, missing, _ = self.ask("z" * 24)
        self.assertEqual(status, 404)
        for name in (event, f"{event}-1", self.receipt(event)["traceId"]):
            status, foreign, _ = self.daemon.request(
                "GET", f"/management/receipts/{name}", headers=self.basic("far@other.example", "other secret 42"))
            self.assertEqual((status, foreign["detail"]), (404, missing["detail"]))

    @staticmethod
    def basic(user, password):
        return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}

    def test_an_erased_user_has_no_receipts(self):
        event = self.accepted("echo", "gone", text="hi")
        self.ended(event)
        exported = self.daemon.ctl("users-data", "export", "user of gone")["items"]
        self.assertEqual([item["eventId"] for item in exported if item["kind"] == "receipt"], [event])
        self.daemon.wait_idle()
        self.assertEqual(self.daemon.ctl("users-data", "erase", "user of gone")["receipts"], 1)
        self.assertEqual(self.ask(event)[0], 404)


class Killed(ReceiptCase):
    def go_down_at(self, point, session):
        """The daemon dies at this point of the code with an event in hand. Returns the event's Idempotency-Key."""
        self.daemon.terminate()
        self.daemon.start({"CONVERSED_TEST_KILL_AT": point})
        try:
            self.inject("hooked", session, {"Idempotency-Key": session}, text="hello")
        except (OSError, http.client.HTTPException):
            pass  # the daemon died before its answer
        self.assertTrue(self.daemon.wait_end(60), f"{point} was not reached")
        self.daemon.start()
        return session

    def test_a_turn_whose_commit_was_lost_is_shown_once(self):
        receipt = self.ended(self.go_down_at("turn.before_submit", "before"))
        self.assertEqual(len(self.steps(receipt, "turn")), 1)
        self.assertIn("recovery", self.causes(receipt))

    def test_a_turn_that_was_committed_is_shown_once(self):
        receipt = self.ended(self.go_down_at("turn.after_commit", "after"))
        self.assertEqual(len(self.steps(receipt, "turn")), 1)
        self.assertEqual(len(self.steps(receipt, "delivery")), 1)

    def test_a_delivery_whose_mark_was_lost_is_shown_when_it_is_repeated(self):
        receipt = self.ended(self.go_down_at("deliver.after_post", "unmarked"))
        (delivery,) = self.steps(receipt, "delivery")
        self.assertEqual((delivery["try"], delivery["status"]), (1, 204))


class SwitchedOff(ReceiptCase):
    settings = "retention: {receipts: 0s}\n"

    def test_no_receipts_are_written(self):
        event = self.accepted("hooked", "unseen", text="hello")
        self.daemon.wait_idle()
        self.assertEqual(self.ask(event)[0], 404)


if __name__ == "__main__":
    unittest.main()
