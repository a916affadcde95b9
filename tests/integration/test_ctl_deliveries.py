"""`conversectl deliveries`, `conversectl endpoints` and `conversectl why`, for people and with --json, on webhooks that fail."""

import unittest

from ctl_case import TIME, CtlCase

# Nothing listens on port 9 of this machine.
BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
flows: [{name: Echo, nodes: [{say: "{{input.text}}"}]}]
endpoints:
""" + "".join(f"""
  - {{name: {name}, flow: Echo, output: {{webhook: {{url: "http://127.0.0.1:9/{name}", secret: "${{HOOK_SECRET}}"}}}}}}
""" for name in ("listed", "shown", "retried", "dropped", "asked", "health", "paused"))


class DeliveryCommands(CtlCase):
    settings = "delivery: {pause_after: 1ms}\n"
    bundle = BUNDLE

    def failed(self, endpoint, outputs=1):
        """Makes outputs of one session, and waits until the webhook has refused the first one. Returns their ids."""
        for number in range(outputs):
            self.assertEqual(self.inject(endpoint, "s", text=f"text {number}")[0], 200)
        while True:
            items = self.daemon.manage("GET", f"deliveries?URLToken={self.tokens[endpoint]}")["items"]
            if len(items) == outputs and items[0]["attempts"] > 0:
                return [item["_id"] for item in items]
            self.assertFalse(self.daemon.wait_end(0.05), "the daemon ended")

    def endpoint(self, name):
        return next(each["_id"] for each in self.report["endpoints"] if each["name"] == name)

    def pause(self, name, first):
        """Retries this output until the webhook is paused. Returns the id of its Endpoint."""
        while self.daemon.manage("GET", f"endpoints/{self.endpoint(name)}/health")["state"] != "paused":
            self.daemon.ctl("deliveries", "retry", first)
            self.assertFalse(self.daemon.wait_end(0.05), "the daemon ended")
        return self.endpoint(name)

    def test_deliveries_list(self):
        first, second = self.failed("listed", 2)
        chosen = ("deliveries", "list", "--endpoint", self.tokens["listed"])
        row = self.row(self.people(*chosen), ID=first, ENDPOINT="listed", USER="user of s", SESSION="s")
        self.assertRegex(row["CREATED"], f"^{TIME}$")
        self.row(self.people(*chosen, "--state", "behind"), ID=second, STATE="behind")
        self.assertEqual([item["_id"] for item in self.json(*chosen)["items"]], [first, second])
        self.assertEqual(self.people(*chosen, "--older-than", "1h"), "No deliveries.\n")

    def test_deliveries_show(self):
        _, second = self.failed("shown", 2)
        shown = self.json("deliveries", "show", second)
        self.assertEqual((shown["text"], shown["state"]), ("text 1", "behind"))
        self.assertEqual(shown["waits"][0]["reason"], "behindOutput")
        self.assertIn("text\ttext 1\n", self.people("deliveries", "show", second))

    def test_deliveries_retry(self):
        first, second = self.failed("retried", 2)
        self.assertEqual(self.people("deliveries", "retry", second), f"Retried {second}\n")
        self.assertEqual(self.json("deliveries", "retry", second)["firstId"], first)
        chosen = ("deliveries", "retry", "--endpoint", self.tokens["retried"])
        counts, note = self.people(*chosen).splitlines()
        self.assertEqual(counts, "1 changed, 0 skipped", "one try for a session")
        self.assertIn("the others follow when it succeeds", note)
        self.assertIn("--endpoint", self.run_ctl("deliveries", "retry", code=2).stderr)

    def test_deliveries_drop(self):
        first, *_ = self.failed("dropped", 4)
        self.assertEqual(self.people("deliveries", "drop", first), f"Dropped {first}\n")
        self.assertRegex(self.people("receipt", first), r"output 1 dropped by admin@example.com; dead letter [a-z0-9]{24}")
        self.assertRegex(self.people("why", first), r"^Nothing waits: the output was dropped by admin@example.com; dead letter")
        chosen = ("deliveries", "drop", "--endpoint", self.tokens["dropped"])
        self.assertEqual(self.people(*chosen, "--older-than", "1d"), "0 changed, 0 skipped\n")
        job = self.json(*chosen)
        self.assertEqual((job["type"], job["status"], job["data"]["changed"]), ("dropDeliveries", "done", 3))
        self.assertEqual(self.people("deliveries", "list", "--endpoint", self.tokens["dropped"]), "No deliveries.\n")
        letters = self.daemon.ctl("deadletters", "list", "--state", "discarded")["items"]
        self.assertEqual([letter["outputSeq"] for letter in letters], [1, 2, 3, 4])
        shown = self.daemon.ctl("deadletters", "show", letters[0]["_id"])
        self.assertEqual((shown["text"], shown["server"]), ("text 0", "127.0.0.1:9"))
        self.assertGreater(shown["attempts"], 0)

    def test_endpoints_health(self):
        self.failed("health")
        health = self.json("endpoints", "health", self.endpoint("health"))
        self.assertIn(health["state"], ("fails", "paused"))
        self.assertEqual(health["lastStatus"], None)
        self.assertIn("the webhook", health["lastError"])
        self.assertEqual((health["rate"]["failedPercent"], health["rate"]["posts"]), (100, health["rate"]["failed"]))
        self.assertGreater(health["rate"]["perMinute"], 0)
        self.assertIn("lastError", self.people("endpoints", "health", self.endpoint("health")))

    def test_endpoints_resume(self):
        first, = self.failed("paused")
        endpoint = self.pause("paused", first)
        self.assertIn(self.json("endpoints", "resume", endpoint)["state"], ("works", "fails"))
        self.pause("paused", first)
        self.assertIn("Resumed", self.people("endpoints", "resume", endpoint))

    def test_why(self):
        first, second = self.failed("asked", 2)
        self.assertIn("goes first", self.people("why", second, code=20))
        waits = self.json("why", second, code=20)["waits"]
        self.assertEqual(waits[0]["reason"], "behindOutput")
        self.assertIn(waits[1]["reason"], ("deliveryFailing", "endpointPaused", "sending"))
        self.assertIn("name an ID", self.run_ctl("why", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
