"""Tests for every kind of log and store: a mixin for a DaemonCase whose bundle has the Endpoints `echo` and `lookup`."""


class MainJob:
    def test_an_inject_runs_through_the_flow_to_the_webhook(self):
        self.assertEqual(self.inject("echo", "main", text="hello")[0], 200)
        self.assertTrue(self.receiver.wait_for(
            lambda all: any(body["output"]["text"] == "hello" for _, _, body in all), 60))
        self.assertEqual(self.say("echo", "main", "again")[1]["text"], "again")
        self.assertEqual(self.texts("echo", "main"), ["hello", "again"])

    def test_the_result_of_a_call_comes_back_through_the_log(self):
        self.assertEqual(self.say("lookup", "call", "a")[1]["text"], "a: shipped")
