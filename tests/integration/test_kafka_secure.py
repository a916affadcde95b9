"""A daemon connects to Kafka by TLS and SASL: its settings reach librdkafka, and its log never shows the password."""

import concurrent.futures

from kafka_case import KafkaCase, main

from kafka import Broker  # case.py adds its folder to the path

PASSWORD = "hunter2-of-the-broker"
WRONG = "hunter3-of-nobody"


class Secure(KafkaCase):
    @classmethod
    def make_broker(cls):
        return Broker(users={"conversed": PASSWORD})

    @classmethod
    def secure_settings(cls, password):
        return KafkaCase.kafka_settings(cls.broker.secure_address, [
            "security.protocol=sasl_ssl", "sasl.mechanism=PLAIN", "sasl.username=conversed",
            f"sasl.password={password}", f"ssl.ca.location={cls.broker.authority}"])

    @classmethod
    def kafka_settings(cls, address, properties=()):
        return cls.secure_settings(PASSWORD)

    def restart_with(self, settings):
        self.daemon.kill()
        text = self.daemon.config.read_text()
        self.daemon.config.write_text(text[:text.index("queue:")] + settings)

    def test_events_pass_through_tls_and_sasl(self):
        self.assertEqual(self.inject("echo", "secure", text="hello")[0], 200)
        self.assertEqual(self.say("echo", "secure", "again")[1]["text"], "again")
        self.assert_once_and_in_order("secure", ["hello", "again"])

    def test_a_daemon_with_a_wrong_password_is_not_ready_and_does_not_log_it(self):
        self.restart_with(self.secure_settings(WRONG))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            self.daemon.ports = {}
            starting = pool.submit(self.daemon.start)
            while not self.daemon.ports:
                done, _ = concurrent.futures.wait([starting], 0.05)
                self.assertFalse(done, "the daemon is ready with a wrong password, or has ended")
            self.assertEqual(self.inject("echo", "refused", text="refused")[0], 503)
            self.assertFalse(self.ready())
            self.daemon.kill()
            self.assertFalse(starting.result())
        self.restart_with(self.secure_settings(PASSWORD))
        self.assertTrue(self.daemon.start())
        log = self.daemon.log_path.read_text()
        self.assertNotIn(PASSWORD, log)
        self.assertNotIn(WRONG, log)


if __name__ == "__main__":
    main()
