"""A daemon whose log is Kafka and whose store is PostgreSQL: the main job, and what is kept where."""

import pathlib

from kafka_case import KafkaCase, main, skip

import postgres  # case.py says where


class PostgresCase(KafkaCase):
    @classmethod
    def setUpClass(cls):
        cls.server = postgres.Server()
        cls.addClassCleanup(cls.server.close)
        cls.server.start()
        cls.store_settings = f"store: {{driver: postgres, postgres: {{url: '{cls.server.url}'}}}}\n"
        super().setUpClass()


class TheMainJob(PostgresCase):
    def test_an_inject_runs_through_the_flow_to_the_webhook(self):
        self.assertEqual(self.inject("echo", "main", text="hello")[0], 200)
        self.assertTrue(self.receiver.wait_for(
            lambda all: any(body["output"]["text"] == "hello" for _, _, body in all), 60))
        self.assertEqual(self.say("echo", "main", "again")[1]["text"], "again")
        self.assertEqual(self.texts("echo", "main"), ["hello", "again"])

    def test_a_call_comes_back_through_the_log(self):
        self.assertEqual(self.say("lookup", "call", "a")[1]["text"], "a: shipped")

    def test_the_store_is_in_the_database_alone(self):
        self.assertEqual(self.say("echo", "where", "here")[1]["text"], "here")
        self.assertFalse((pathlib.Path(self.folder.name) / "data" / "store.db").exists())
        self.assertEqual(self.server.run_sql("SELECT count(*) FROM outputs WHERE text = 'here'"), "1")

    def test_a_clean_stop_leaves_nothing(self):
        for number in range(50):
            self.assertEqual(self.inject("echo", "clean", text=str(number))[0], 200)
        self.assertEqual(self.daemon.terminate(), 0)
        self.assertTrue(self.daemon.start())
        self.assert_once_and_in_order("clean", [str(number) for number in range(50)])

    def test_a_change_in_the_database_is_seen_without_a_restart(self):
        key = self.daemon.ctl("apikey", "create", "--name", "brief")["key"]
        headers = {"X-API-Key": key}
        self.assertEqual(self.inject("echo", "keys", headers, text="a")[0], 200)
        self.server.run_sql("DELETE FROM api_keys WHERE name = 'brief'")
        while self.inject("echo", "keys", headers, text="b")[0] != 401:
            self.assertFalse(self.daemon.wait_end(0.01), "the daemon ended")


if __name__ == "__main__":
    try:
        postgres.Server().close()
    except postgres.Unavailable as missing:
        skip(f"no PostgreSQL to test against: {missing} (package postgresql)")
    main()
