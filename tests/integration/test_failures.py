"""Events that crash the daemon, and a store that refuses writes: their effects on clients, operators and the next start."""

import contextlib
import http.client
import os
import socket
import threading
import unittest

from case import DaemonCase

BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - name: Lookup
    nodes:
      - say: "looking"
      - httpRequest: {method: POST, url: "UPSTREAM/orders", body: {id: "{{input.text}}"}, storeIn: context.order,
                      timeout: 60s}
      - say: "{{input.text}}: {{context.order.state}}"
  - name: Echo
    nodes:
      - say: "{{input.text}}"
  - name: Sleeper
    nodes:
      - say: one moment
      - sleep: {for: 1h}
endpoints:
  - {name: sleeper, flow: Sleeper, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
  - {name: lookup, flow: Lookup, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
  - {name: echo, flow: Echo, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
  - {name: quiet, flow: Echo}
"""


class FailureCase(DaemonCase):
    bundle = BUNDLE

    def setUp(self):
        self.upstream.open.set()
        self.upstream.requests.clear()

    def go_down(self, point):
        """Starts the daemon and waits until it dies at this point of the code."""
        self.daemon.start({"CONVERSED_TEST_KILL_AT": point})
        self.assertTrue(self.daemon.wait_end(60), f"{point} was not reached")

    def delivered(self, session):
        with self.receiver.lock:
            all = list(self.receiver.deliveries)
        return [body["output"]["text"] for _, _, body in all if body["sessionId"] == session]


class Crashes(FailureCase):
    def tearDown(self):
        for letter in self.letters():
            self.daemon.ctl("deadletters", "discard", letter["_id"])
        self.daemon.terminate()
        self.daemon.start()

    def letters(self):
        letters = self.daemon.ctl("deadletters", "list")["items"]
        return [letter for letter in letters if letter["state"] == "new" and "went down" in letter["reason"]]

    def test_an_event_that_crashes_the_daemon_three_times_becomes_a_dead_letter(self):
        self.daemon.terminate()
        self.assertTrue(self.daemon.start({"CONVERSED_TEST_KILL_AT": "turn.before_run:1"}))
        with contextlib.suppress(OSError, http.client.HTTPException):  # the answer may come before the crash
            self.inject("echo", "crash", text="boom")
        self.assertTrue(self.daemon.wait_end(60))
        self.go_down("turn.before_run:1")
        self.go_down("turn.before_run:1")
        self.assertTrue(self.daemon.start({"CONVERSED_TEST_KILL_AT": "turn.before_run:2"}))
        self.assertEqual(self.inject("echo", "crash", text="well?")[0], 200)
        self.daemon.wait_idle()
        self.assertEqual(self.texts("echo", "crash"), ["well?"])
        self.assertEqual([letter["sessionId"] for letter in self.letters()], ["crash"])

    def test_two_events_that_are_in_hand_at_every_crash_still_run(self):
        self.daemon.terminate()
        fifo = self.daemon.folder / "beside"
        os.mkfifo(fifo)
        said = [str(crash) for crash in range(4)]
        for crash in said:
            self.assertTrue(self.daemon.start({
                "CONVERSED_TEST_HOLD_AT": "turn.before_submit", "CONVERSED_TEST_HOLD_FIFO": str(fifo),
                "CONVERSED_TEST_KILL_AT": "turn.before_run:2"}))
            self.assertEqual(self.inject("echo", "first", text=crash)[0], 200)
            with open(fifo, "w"):  # opens when the first event's Turn has run; holds that Turn
                with contextlib.suppress(OSError, http.client.HTTPException):
                    self.inject("echo", "second", text=crash)
                self.assertTrue(self.daemon.wait_end(60))
            size = self.daemon.log_path.stat().st_size
            self.assertTrue(self.daemon.start())
            self.daemon.wait_idle()
            self.assertIn(b'"events":2', self.daemon.log_path.read_bytes()[size:])
            self.assertEqual(self.daemon.terminate(), 0)
        self.assertTrue(self.daemon.start())
        self.assertEqual(self.texts("echo", "first"), said)
        self.assertEqual(self.texts("echo", "second"), said)
        self.assertEqual(self.letters(), [])

    def test_an_inbox_event_that_crashes_the_daemon_three_times_becomes_a_dead_letter(self):
        self.upstream.open.clear()
        self.assertEqual(self.inject("lookup", "inbox", text="a")[0], 200)
        self.assertTrue(self.upstream.wait_for(1))
        self.assertEqual(self.inject("lookup", "inbox", text="boom")[0], 200)
        while True:  # waits until the second event is in the inbox
            status = self.daemon.ctl("status")
            if status["counts"]["inInboxes"] == 1 and status["queue"]["lag"] == 0:
                break
            self.assertFalse(self.daemon.wait_end(0.02))
        self.daemon.kill()
        self.upstream.open.set()
        # First run: one batch has the Turn of the call's result and the Turn of the waiting event. Later runs: each event
        # runs alone, the waiting event last.
        self.go_down("turn.before_run:2")
        self.go_down("turn.before_run:2")
        self.go_down("turn.before_run:1")
        self.assertTrue(self.daemon.start({"CONVERSED_TEST_KILL_AT": "turn.before_run:1"}))
        self.daemon.wait_idle()
        self.assertEqual(self.texts("lookup", "inbox"), ["looking", "a: shipped"])
        self.assertEqual([letter["sessionId"] for letter in self.letters()], ["inbox"])


class FailingStore(FailureCase):
    settings = "api: {turn_timeout: 1s}\nshutdown_timeout: 8s\n"

    def test_a_client_gets_503_while_the_store_is_locked_and_the_webhook_gets_the_outputs(self):
        self.assertEqual(self.say("echo", "late", "first")[0], 200)
        with self.daemon.locked_store():
            status, body = self.say("echo", "late", "second")
        self.assertEqual(status, 503, body)
        self.assertTrue(self.receiver.wait_for(
            lambda all: any(body["output"]["text"] == "second" for _, _, body in all), 60))
        self.daemon.wait_idle()
        self.assertEqual(self.texts("echo", "late"), ["first", "second"])
        self.assertEqual(self.delivered("late"), ["second"])

    def test_a_delivery_after_a_cut_survives_a_kill(self):
        self.assertEqual(self.daemon.terminate(), 0)
        self.assertTrue(self.daemon.start({"CONVERSED_TEST_KILL_AT": "turn.after_commit"}))
        with self.daemon.locked_store():
            status, body = self.say("echo", "killed", "third")
        self.assertEqual(status, 503, body)
        self.assertTrue(self.daemon.wait_end(60))
        self.assertTrue(self.daemon.start())
        self.assertTrue(self.receiver.wait_for(
            lambda all: any(body["output"]["text"] == "third" for _, _, body in all), 60))
        self.daemon.wait_idle()
        self.assertEqual(self.texts("echo", "killed"), ["third"])

    def test_the_answer_has_the_outputs_before_a_long_sleep(self):
        status, body = self.say("sleeper", "sleeps", "hello")
        self.assertEqual((status, body["text"]), (202, "one moment"))
        self.assertEqual(self.daemon.full_status()["counts"]["pendingDeliveries"], 0)
        self.assertEqual(self.delivered("sleeps"), [], "the webhook got an output of the answer")

    def test_an_operator_gets_503_while_the_store_is_locked(self):
        for name in ("late", "later"):
            with self.daemon.locked_store():
                status, body, _ = self.daemon.request("POST", "/management/apikeys", {"name": name}, basic=True)
            self.assertEqual(status, 503, body)
        names = [key["name"] for key in self.daemon.ctl("apikey", "list")["items"]]
        self.assertEqual(names, ["tests"])

    def stop_while_locked(self, work):
        """Runs `work` with a locked store and stops the daemon as soon as it is not ready."""
        with self.daemon.locked_store():
            working = threading.Thread(target=work)
            working.start()
            while self.daemon.get_status(self.daemon.ports["admin"], "/readyz") == 200:
                self.assertFalse(self.daemon.wait_end(0.02))
            self.assertEqual(self.daemon.terminate(), 0)
            working.join()
        self.daemon.start()
        self.daemon.wait_idle()

    def test_a_stop_does_not_wait_for_a_turns_commit(self):
        self.stop_while_locked(lambda: self.say("echo", "stop", "a"))
        self.assertEqual(self.texts("echo", "stop"), ["a"])

    def test_a_stop_does_not_wait_for_the_commit_of_an_operators_write(self):
        self.stop_while_locked(lambda: self.daemon.ctl("apikey", "create", "--name", "late", check=False))

    def test_a_stop_does_not_wait_for_the_commit_of_an_event_that_runs_alone(self):
        self.daemon.terminate()
        self.assertTrue(self.daemon.start({"CONVERSED_TEST_KILL_AT": "turn.before_run"}))
        with contextlib.suppress(OSError, http.client.HTTPException):
            self.inject("quiet", "alone", text="a")
        self.assertTrue(self.daemon.wait_end(60))
        fifo = self.daemon.folder / "alone"
        os.mkfifo(fifo)
        self.assertTrue(self.daemon.start({"CONVERSED_TEST_HOLD_AT": "turn.before_submit",
                                           "CONVERSED_TEST_HOLD_FIFO": str(fifo)}))
        with self.daemon.locked_store():
            with open(fifo, "w"):  # opens when the event's Turn has run
                pass
            while self.daemon.get_status(self.daemon.ports["admin"], "/readyz") == 200:
                self.assertFalse(self.daemon.wait_end(0.02))
            self.assertEqual(self.daemon.terminate(), 0)
        self.daemon.start()
        self.daemon.wait_idle()
        self.assertEqual(self.texts("quiet", "alone"), ["a"])


class FailedStarts(FailureCase):
    def start_on_a_taken_port(self):
        config = self.daemon.config.read_text()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            self.daemon.config.write_text(config.replace("127.0.0.1, port: 0}", f"127.0.0.1, port: {port}}}"))
            self.assertFalse(self.daemon.start())
            self.assertEqual(self.daemon.process.returncode, 1)
        self.daemon.config.write_text(config)

    def start_that_attributes(self):
        """Starts the daemon. Returns whether it found events that were in hand at a crash."""
        size = self.daemon.log_path.stat().st_size
        self.assertTrue(self.daemon.start())
        return b"went down with events in hand" in self.daemon.log_path.read_bytes()[size:]

    def test_a_failed_start_leaves_the_notes_of_a_crash_to_the_next_start(self):
        self.daemon.terminate()
        self.assertTrue(self.daemon.start({"CONVERSED_TEST_KILL_AT": "turn.before_run"}))
        with contextlib.suppress(OSError, http.client.HTTPException):
            self.inject("quiet", "failed start", text="a")
        self.assertTrue(self.daemon.wait_end(60))
        self.start_on_a_taken_port()
        self.assertTrue(self.start_that_attributes())
        self.daemon.wait_idle()
        self.assertEqual(self.texts("quiet", "failed start"), ["a"])
        self.assertEqual(self.daemon.terminate(), 0)
        self.start_on_a_taken_port()
        self.assertFalse(self.start_that_attributes())


class Waits(FailureCase):
    settings = "api: {turn_timeout: 60s}\nshutdown_timeout: 4s\n"

    def reset(self, endpoint, session):
        body = {"URLToken": self.tokens[endpoint], "userId": f"user of {session}", "sessionId": session}
        return self.daemon.request("POST", "/management/sessions/reset", body, basic=True)[0]

    def test_a_message_that_a_reset_ends_gets_500_and_runs_again_under_its_key(self):
        self.upstream.open.clear()
        key = {"Idempotency-Key": "reset"}
        answers = []
        client = threading.Thread(target=lambda: answers.append(self.say("lookup", "reset", "a", key)))
        client.start()
        self.assertTrue(self.upstream.wait_for(1))
        self.assertEqual(self.reset("lookup", "reset"), 204)
        client.join()
        self.assertEqual(answers[0][0], 500, answers)
        self.upstream.open.set()
        status, answer = self.say("lookup", "reset", "a", key)
        self.assertEqual((status, answer["text"]), (200, "looking\na: shipped"))
        self.assertEqual(self.say("lookup", "reset", "a", key), (status, answer))
        self.assertEqual(self.texts("lookup", "reset"), ["looking", "looking", "a: shipped"])
        self.daemon.wait_idle()
        self.assertEqual(self.delivered("reset"), [], "the webhook got an output of the answer")

    def test_a_stop_answers_a_waiting_client_with_the_outputs_so_far(self):
        answers = []
        self.upstream.open.clear()
        client = threading.Thread(target=lambda: answers.append(self.say("lookup", "stopped", "a")))
        client.start()
        self.assertTrue(self.upstream.wait_for(1))
        self.assertEqual(self.daemon.terminate(), 0)
        client.join()
        self.assertEqual((answers[0][0], answers[0][1]["text"]), (202, "looking"))
        self.upstream.open.set()
        self.assertTrue(self.daemon.start())
        self.daemon.wait_idle()
        self.assertEqual(self.delivered("stopped"), ["a: shipped"])


if __name__ == "__main__":
    unittest.main()
