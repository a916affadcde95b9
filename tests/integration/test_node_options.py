"""The options of calls that `flow test` can't show: Connections, headers, times and attempts. tests/flows has all others."""

import pathlib
import unittest

from case import CONNECTION_TOKEN, DaemonCase


class NodeOptions(DaemonCase):
    bundle = pathlib.Path(__file__).with_name("node_options.flow.yaml").read_text()
    # No answer would come from an ignored time-out before the client gives up.
    settings = "calls: {timeout: 5m}\n"

    def asked(self, endpoint, text, *statuses):
        """Says the text, while the upstream answers with these statuses first. Returns the answer and the requests."""
        before = len(self.upstream.requests)
        self.upstream.statuses.extend(statuses)
        status, answer = self.say(endpoint, f"{endpoint} {text}", text)
        self.assertEqual(status, 200, answer)
        self.assertEqual(self.upstream.statuses, [])
        return answer["text"], self.upstream.requests[before:]

    def test_a_request_has_its_headers_and_the_credentials_of_its_connection(self):
        (path, headers, body), = self.asked("request", "7")[1]
        self.assertEqual((path, headers["X-Order"], headers["Authorization"], body),
                         ("/orders", "A-7", f"Bearer {CONNECTION_TOKEN}", b'{"id":7}'))

    def test_a_model_is_asked_by_the_connection_that_the_node_names(self):
        for endpoint, name, model in (("prompt", "judge", "small"), ("agent", "writer", "large")):
            (path, headers, body), = self.asked(endpoint, "hi")[1]
            self.assertEqual((path, headers["Authorization"]), (f"/{name}/chat/completions", f"Bearer key-of-the-{name}"))
            self.assertIn(f'"model":"{model}"', body.decode())

    def test_a_request_is_tried_as_often_as_retries_says(self):
        self.assertEqual(self.asked("request", "ok", 503, 503)[0], "")
        said, requests = self.asked("request", "bad", 503, 503, 503)
        self.assertEqual((said, len(requests)), ("status 503", 3))

    def test_a_model_is_asked_as_often_as_retries_says(self):
        for endpoint in "prompt", "agent":
            # The upstream is no model, so its answer 200 is none.
            self.assertEqual(self.asked(endpoint, "one", 500)[0], "invalid_answer 200")
            said, requests = self.asked(endpoint, "two", 500, 500)
            self.assertEqual((said, len(requests)), ("status 500", 2))

    def test_a_call_takes_no_longer_than_its_timeout(self):
        self.upstream.open.clear()
        self.addCleanup(self.upstream.open.set)
        for endpoint in "request", "prompt", "agent":
            self.assertEqual(self.asked(endpoint, "slow")[0], "timeout")


if __name__ == "__main__":
    unittest.main()
