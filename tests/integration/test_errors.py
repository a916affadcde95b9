"""Every row of the table of errors. A cause that clients or operators can meet leads to each row over HTTP."""

import concurrent.futures
import functools
import json
import os
import resource
import unittest

from case import DaemonCase

BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
members:
  - {email: eve@example.com, name: Eve, roles: [tokenAdmin]}
connections: [{name: crm, type: httpBearer, fields: {token: "${CRM_TOKEN}"}}]
flows:
  - {name: Echo, nodes: [{say: "{{input.text}}"}]}
  - name: Endless
    nodes: [{id: again, addToContext: {n: 1}}, {goTo: again}]
  - name: Lookup
    nodes: [{httpRequest: {method: GET, url: "UPSTREAM/orders", storeIn: context.order, timeout: 60s}}]
endpoints:
  - {name: echo, flow: Echo}
  - {name: active, flow: Echo, activeOnly: true}
  - {name: endless, flow: Endless}
  - {name: lookup, flow: Lookup}
"""

MISSING = "z" * 24
UNKNOWN_TOKEN = "f" * 64

# Status, type, title, code. First the rows of the specification, section 7, then the rows of the decisions.
SPECIFIED = [
    (400, "Bad Request", "Bad Request Error", 1000),
    (401, "Unauthorized", "Unauthorized Error", 401),
    (402, "Payment Required", "Payment Required Error", 402),
    (403, "Forbidden", "Forbidden Error", 1000),
    (404, "Not Found", "Not Found Error", 1000),
    (405, "Method Not Allowed", "Method Not Allowed Error", 1000),
    (409, "Conflict", "Conflict Error", 1004),
    (413, "Payload Too Large", "Payload Too Large Error", 1000),
    (500, "Internal Server Error", "Internal Server Error", 1000),
    (501, "Not Implemented", "Not Implemented Error", 1009),
    (503, "Service Unavailable", "Service Unavailable Error", 503),
    (504, "Gateway Timeout", "Gateway Timeout Error", 1000),
    (429, "Too Many Requests", "Too Many Requests Error", 429),
]
HTTP_DATE = r"^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$"


class Errors(DaemonCase):
    bundle = BUNDLE
    settings = ("proactive: {enabled: false}\nquota: {tokens: 1}\nlimits: {inbox: 1}\n"
                "api: {turn_timeout: 1s}\n")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.eve = cls.daemon.ctl("apikey", "create", "--name", "eve", "--user", "eve@example.com")["key"]
        cls.snippets = f"/v2.0/projects/{cls.report['project']['_id']}/snippets"

    def ask(self, method, path, body=None, headers=None):
        """Returns the answer and the path of the request."""
        headers = {"X-API-Key": self.key} if headers is None else headers
        return (*self.daemon.request(method, path, body, headers), path)

    def message(self, endpoint, session="s"):
        return {"URLToken": self.tokens.get(endpoint, endpoint), "userId": "u", "sessionId": session, "text": "t"}

    def inject_into(self, endpoint, session="s"):
        return self.ask("POST", "/v2.0/endpoint/inject", self.message(endpoint, session))

    def say_to(self, endpoint, session="s"):
        message = self.message(endpoint, session)
        return self.ask("POST", "/" + message.pop("URLToken"), message, {})

    # --- One cause a row --------------------------------------------------------------------------

    def cause_400(self):
        return self.ask("PATCH", self.snippets.replace("snippets", f"members/{MISSING[:-1]}"), {})

    def cause_401(self):
        return self.ask("GET", "/v2.0/tasks", headers={"X-API-Key": "cvk_nobody"})

    def cause_402(self):
        self.ask("POST", self.snippets, {})
        return self.ask("POST", self.snippets, {})

    def cause_403(self):
        connection = self.report["connections"][0]["_id"]
        return self.ask("DELETE", f"/v2.0/connections/{connection}", headers={"X-API-Key": self.eve})

    def cause_404(self):
        return self.ask("DELETE", f"/v2.0/connections/{MISSING}")

    def cause_405(self):
        return self.ask("PUT", self.snippets, {})

    def cause_409(self):
        return self.inject_into("active", "never began")

    def cause_413(self):
        return self.ask("POST", "/v2.0/endpoint/inject", {**self.message("echo"), "text": "x" * 70_000})

    def cause_500(self):
        return self.say_to("endless")

    def cause_501(self):
        return self.ask("POST", self.snippets.replace("snippets", "settings/proactive/setup"))

    def cause_503(self):
        """The disk takes nothing more. The outcome of the first append is unknown."""
        limit = functools.partial(resource.prlimit, self.daemon.process.pid, resource.RLIMIT_FSIZE)
        before = limit((0, resource.RLIM_INFINITY))
        try:
            answer = self.inject_into("echo")
            while answer[0] == 504:
                answer = self.inject_into("echo")
            return answer
        finally:
            limit(before)

    def cause_504(self):
        """The log holds the append for longer than the client waits."""
        fifo = self.daemon.folder / "fifo"
        os.mkfifo(fifo)
        self.daemon.terminate()
        self.assertTrue(self.daemon.start({"CONVERSED_TEST_HOLD_AT": "log.before_commit",
                                           "CONVERSED_TEST_HOLD_FIFO": str(fifo)}))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(self.say_to, "echo", "slow")
            with open(fifo, "w"):  # opens when the daemon holds the append
                return answer.result()

    def cause_429(self):
        self.upstream.open.clear()
        try:
            while True:  # the first event waits for the upstream, the next one fills the inbox
                answer = self.inject_into("lookup", "full")
                if answer[0] != 200:
                    return answer
        finally:
            self.upstream.open.set()
            self.daemon.wait_idle()

    # --- The table --------------------------------------------------------------------------------

    def test_every_row_is_reached_and_matches_the_specification(self):
        for status, type_, title, code in SPECIFIED:
            with self.subTest(status=status):
                answered, body, headers, path = getattr(self, f"cause_{status}")()
                self.assertEqual(answered, status, body)
                self.assertEqual(headers["Content-Type"], "application/problem+json")
                self.assertEqual(headers["Access-Control-Allow-Origin"], "*")
                self.assertRegex(body["traceId"], "^[0-9a-f]{32}$")
                self.assertEqual(headers["X-Trace-Id"], body["traceId"])
                self.assertIn(body["traceId"], headers["traceparent"])
                expected = {"type": type_, "title": title, "status": status, "code": code, "instance": path,
                            "traceId": body["traceId"], "details": {}}
                if status == 404:
                    expected["logLevel"] = "error"
                detail = body.pop("detail")
                self.assertEqual(body, expected)
                self.assertNotRegex(detail, r"(?i)sqlite|\.db|select |/tmp|exception")
                self.check_headers(status, headers)
        # The daemon recovers from each cause.
        self.daemon.wait_idle()
        self.assertEqual(self.inject_into("echo", "after")[0], 200)
        self.assertEqual(self.say_to("echo", "after")[1]["text"], "t")
        self.assertEqual(self.daemon.get_status(self.daemon.ports["admin"], "/readyz"), 200)

    def check_headers(self, status, headers):
        self.assertEqual(headers["WWW-Authenticate"], 'Bearer realm="conversed"' if status == 401 else None)
        self.assertEqual(headers["Allow"], "POST, OPTIONS" if status == 405 else None)
        if status in (429, 503):
            self.assertRegex(headers["Retry-After"], HTTP_DATE)
        else:
            self.assertIsNone(headers["Retry-After"])

    def test_400_and_404_of_inject_and_notify_have_the_reduced_shape(self):
        unknown, wrong = self.message(UNKNOWN_TOKEN), {"text": "t"}
        for route in ("inject", "notify"):
            cases = [(f"/v2.0/endpoint/{route}", unknown, 404, "Not Found"),
                     (f"/{route}/{UNKNOWN_TOKEN}", unknown, 404, "Not Found"),
                     (f"/v2.0/endpoint/{route}", wrong, 400, "Bad Request"),
                     (f"/{route}/{self.tokens['echo']}", wrong, 400, "Bad Request")]
            for path, sent, status, type_ in cases:
                with self.subTest(path=path, status=status):
                    answered, body, headers, _ = self.ask("POST", path, sent)
                    self.assertEqual(answered, status, body)
                    self.assertEqual(sorted(body), ["code", "detail", "status", "type"])
                    self.assertEqual((body["status"], body["code"], body["type"]), (status, 1000, type_))
                    self.assertRegex(headers["X-Trace-Id"], "^[0-9a-f]{32}$")
                    self.assertEqual(headers["Access-Control-Allow-Origin"], "*")
            # All other errors have the full shape.
            answered, body, _, _ = self.ask("POST", f"/v2.0/endpoint/{route}", unknown, headers={})
            self.assertEqual((answered, body["title"]), (401, "Unauthorized Error"))

    def test_the_log_has_the_trace_id_of_a_failed_turn(self):
        trace = "4bf92f3577b34da6a3ce929d0e0e4736"
        message = self.message("endless", "traced")
        status, body, _ = self.daemon.request("POST", "/" + message.pop("URLToken"), message,
                                              {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
        self.assertEqual((status, body["traceId"]), (500, trace))
        lines = [json.loads(line) for line in self.daemon.log_path.read_text().splitlines() if line.startswith("{")]
        self.assertTrue(any(trace in json.dumps(line) for line in lines), "no line of the log has the trace id")


if __name__ == "__main__":
    unittest.main()
