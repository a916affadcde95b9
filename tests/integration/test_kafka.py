"""A daemon whose log is Kafka: each accepted event has its effects once, despite kills of the daemon or of the broker."""

import concurrent.futures
import contextlib
import http.client
import re
import signal
import threading

from kafka_case import Broker, KafkaCase, main
from main_job import MainJob


class TheMainJob(MainJob, KafkaCase):
    def test_a_repeated_key_gets_the_same_answer_before_and_after_a_restart(self):
        key = {"Idempotency-Key": "parcel-1"}
        status, _, headers = self.inject("echo", "keyed", key, text="once")
        self.assertEqual(status, 200)
        for restart in (False, True):
            if restart:
                self.daemon.kill()
                self.daemon.start()
            again = self.inject("echo", "keyed", key, text="once")
            self.assertEqual((again[0], again[2]["X-Inject-Id"]), (200, headers["X-Inject-Id"]))
            self.assertEqual(self.inject("echo", "keyed", key, text="other")[0], 409)
        self.assert_once_and_in_order("keyed", ["once"])

    def test_each_event_runs_once_and_in_order_across_a_clean_stop(self):
        for number in range(50):
            self.assertEqual(self.inject("echo", "clean", text=str(number))[0], 200)
        self.assertEqual(self.daemon.terminate(), 0)
        self.assertTrue(self.daemon.start())
        self.assert_once_and_in_order("clean", [str(number) for number in range(50)])


class Kills(KafkaCase):
    def test_a_kill_of_the_daemon_neither_loses_nor_doubles_effects(self):
        for round in range(3):
            sessions = [f"killed {round}.{number}" for number in range(4)]
            results = {session: ([], []) for session in sessions}
            events = [threading.Event() for _ in sessions]
            with concurrent.futures.ThreadPoolExecutor(len(sessions)) as pool:
                work = [pool.submit(self.inject_until_it_ends, session, *results[session], enough)
                        for session, enough in zip(sessions, events)]
                for enough in events:
                    self.assertTrue(enough.wait(120))
                self.daemon.kill()
                for each in work:
                    each.result()
            self.assertTrue(self.daemon.start())
            for session in sessions:
                self.assert_once_and_in_order(session, *results[session])

    def test_a_kill_of_the_broker_neither_loses_nor_doubles_effects(self):
        accepted, maybe = [], []
        for round in range(2):
            self.assertEqual(self.inject("echo", "broker", text=f"before {round}")[0], 200)
            accepted.append(f"before {round}")
            self.broker.kill()
            statuses = set()
            number = 0
            while self.ready() or not number:  # until the daemon notices the loss
                text = f"down {round}.{number}"
                status, _, _ = self.inject("echo", "broker", text=text)
                statuses.add(status)
                (accepted if status == 200 else maybe).append(text)
                number += 1
            self.assertLessEqual(statuses, {503, 504}, "an inject got a 2xx without a broker, or another error")
            status, _, headers = self.inject("echo", "broker", text="refused")
            self.assertEqual(status, 503, "a daemon that is not ready did not refuse the inject at once")
            self.assertIn("Retry-After", headers)
            self.broker.start()
            self.wait_ready(True)
        self.assertEqual(self.inject("echo", "broker", text="after")[0], 200)
        self.assert_once_and_in_order("broker", [*accepted, "after"], maybe)

    def waiting_seconds(self, reason):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.daemon.ports["admin"], timeout=30)) as connection:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        return float(re.search(rf'^conversed_waiting_seconds{{reason="{reason}"}} (\S+)$', text, re.MULTILINE)[1])

    def test_a_log_that_is_down_is_named_and_counted(self):
        self.wait_ready(True)
        self.broker.kill()
        while self.ready():  # until the daemon notices the loss
            self.inject("echo", "down", text="refused")
        session = f"URLToken={self.tokens['echo']}&userId=user+of+down&sessionId=down"
        wait, = self.daemon.manage("GET", f"why?{session}")["waits"]
        self.assertEqual((wait["reason"], wait["code"]), ("logDown", 24))
        self.assertIn("The log refuses events", wait["subject"])
        self.assertIsNotNone(wait["since"])
        while self.waiting_seconds("logDown") == 0:  # its unit is 1 ms
            self.assertTrue(self.daemon.is_running())
        self.broker.start()
        self.wait_ready(True)
        self.assertEqual(self.waiting_seconds("logDown"), 0)

    def test_an_inject_gets_504_while_the_broker_hangs_and_its_repeat_has_one_effect(self):
        key = {"Idempotency-Key": "hanging"}
        self.wait_ready(True)
        self.assertEqual(self.inject("echo", "hanging", text="first")[0], 200)
        self.broker.signal(signal.SIGSTOP)
        try:
            self.assertEqual(self.inject("echo", "hanging", key, text="second")[0], 504)
            self.wait_ready(False)
        finally:
            self.broker.signal(signal.SIGCONT)
        self.wait_ready(True)
        self.assertEqual(self.inject("echo", "hanging", key, text="second")[0], 200)
        self.assertEqual(self.inject("echo", "hanging", key, text="second")[0], 200)
        self.assert_once_and_in_order("hanging", ["first", "second"])

    def test_a_daemon_refuses_injects_until_its_broker_listens(self):
        self.assertEqual(self.inject("echo", "early", text="before")[0], 200)
        self.daemon.kill()
        self.broker.kill()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            self.daemon.ports = {}
            starting = pool.submit(self.daemon.start)
            while not self.daemon.ports:
                done, _ = concurrent.futures.wait([starting], 0.05)
                self.assertFalse(done, "the daemon is ready without a broker, or has ended")
            self.assertEqual(self.inject("echo", "early", text="refused")[0], 503)
            self.assertFalse(self.ready())
            self.broker.start()
            self.assertTrue(starting.result())
        self.assertEqual(self.inject("echo", "early", text="after")[0], 200)
        self.assert_once_and_in_order("early", ["before", "after"])


class DeletedTopic(KafkaCase):
    """The broker creates a topic for any request that names it, which is the default of Kafka."""

    @classmethod
    def make_broker(cls):
        return Broker(settings={"auto.create.topics.enable": "true"})

    def test_injects_into_a_deleted_topic_are_refused_and_do_not_create_it(self):
        self.assertEqual(self.inject("echo", "gone", text="before")[0], 200)
        self.daemon.wait_idle()
        self.broker.delete_topic("conversed.events")
        statuses = []
        while self.ready() or len(statuses) < 20:
            statuses.append(self.inject("echo", "gone", text="lost")[0])
        self.assertLessEqual(set(statuses), {503, 504})
        self.assertEqual(self.inject("echo", "gone", text="lost")[0], 503)
        self.assertFalse(self.broker.has_topic("conversed.events"), "a request created the topic")


if __name__ == "__main__":
    main()
