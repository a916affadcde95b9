"""A page of another origin uses the API in Chromium."""

import json
import sys
import unittest

import browser
from oauth_case import ANN, ANN_PASSWORD, OauthCase

if browser.CHROMIUM is None:
    print("\n!! SKIPPED: chromium is not installed; `./dev test` installs it\n", file=sys.stderr)
    sys.exit(77)

MISSING = "z" * 24
BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
lexicons: [{name: Words, slots: [], entries: [{mainKeyphrase: a}, {mainKeyphrase: b}, {mainKeyphrase: c}]}]
flows:
  - {name: Echo, nodes: [{say: "{{input.text}}"}]}
endpoints:
  - {name: echo, flow: Echo}
"""
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
# Routes with missing objects. A browser sends a preflight for each of these requests.
ROUTES = [
    ("POST", f"/v2.0/projects/{MISSING}/snippets"), ("PATCH", f"/v2.0/projects/{MISSING}/members/{MISSING}"),
    ("POST", f"/v2.0/projects/{MISSING}/settings/proactive/setup"), ("DELETE", f"/v2.0/connections/{MISSING}"),
    ("GET", f"/v2.0/lexicons/{MISSING}/entries"), ("GET", f"/v2.0/knowledgestores/{MISSING}/sources/{MISSING}/chunks"),
    ("GET", f"/v2.0/tasks/{MISSING}"), ("POST", f"/v2.0/tasks/{MISSING}/cancel"),
    ("POST", "/inject/" + "f" * 64), ("POST", "/notify/" + "f" * 64),
]


class Cors(OauthCase):
    """One page makes all requests, one after the other. The tests check the answers that its script read."""

    bundle = BUNDLE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        status, tokens, _ = cls.daemon.request(
            "POST", "/auth/oauth2/token", "grant_type=password&username=" + ANN.replace("@", "%40")
            + "&password=" + ANN_PASSWORD.replace("'", "%27").replace(" ", "+")
            + f"&client_id={cls.shop['clientId']}&client_secret={cls.shop['clientSecret']}",
            {"Content-Type": "application/x-www-form-urlencoded"})
        assert status == 200, tokens
        cls.requests = []
        cls.add_conversation()
        cls.add_lists(tokens["access_token"])
        cls.add_errors()
        cls.page = browser.Page("cors_page.js", cls.requests)
        cls.addClassCleanup(cls.page.stop)
        cls.results = cls.page.open()

    @classmethod
    def add(cls, name, method, path, body=None, headers=None, **options):
        headers = {"X-API-Key": cls.key} if headers is None else headers
        if body is not None and not isinstance(body, str):
            body = json.dumps(body)
            headers = {"Content-Type": "application/json", **headers}
        cls.requests.append({"name": name, "url": cls.url + path, "options": {
            "method": method, "headers": headers, **({} if body is None else {"body": body}), **options}})

    @classmethod
    def add_conversation(cls):
        message = {"URLToken": cls.tokens["echo"], "userId": "user of page", "sessionId": "page", "text": "from a page"}
        cls.add("inject", "POST", "/v2.0/endpoint/inject", message, {
            "X-API-Key": cls.key, "Idempotency-Key": "from a page", "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01",
            "tracestate": "a=b", "Accept": "*/*"})
        own = {"userId": "user of page", "sessionId": "own", "text": "Hello"}
        cls.add("message", "POST", "/" + cls.tokens["echo"], own, {})
        cls.add("message without preflight", "POST", "/" + cls.tokens["echo"], json.dumps(own), {})
        cls.add("outputs", "GET", f"/{cls.tokens['echo']}/outputs?userId=user%20of%20page&sessionId=page&wait=30",
                headers={})
        cls.add("with cookies", "POST", "/" + cls.tokens["echo"], own, {}, credentials="include")
        cls.add("list with cookies", "GET", "/v2.0/tasks", credentials="include")

    @classmethod
    def add_lists(cls, access_token):
        project = cls.report["project"]["_id"]
        path = f"/new/v2.0/lexicons/{cls.report['lexicons'][0]['_id']}/entries?limit=1"
        cls.add("list by key", "GET", path)
        cls.add("list by query", "GET", f"{path}&api_key={cls.key}", headers={})
        cls.add("list by access token", "GET", path, headers={"Authorization": f"Bearer {access_token}"})
        cls.add("list by contact-center token", "GET", path, headers={"x-contactcenter-authorization": "Bearer a.b.c"})
        cls.add("list as CSV", "GET", path, headers={"X-API-Key": cls.key, "Accept": "text/csv"})
        cls.add("list as XML", "GET", path, headers={"X-API-Key": cls.key, "Accept": "application/xml"})
        cls.add("set-up", "POST", f"/v2.0/projects/{project}/settings/proactive/setup")

    @classmethod
    def add_errors(cls):
        for method, path in ROUTES:
            body = {"userId": "u", "sessionId": "s", "text": "t"} if method in ("POST", "PATCH") else None
            cls.add(f"{method} {path}", method, path, body)
        cls.add("401", "GET", "/v2.0/tasks", headers={})
        cls.add("401 of the console", "GET", "/management/status", headers={"Authorization": "Basic eDp5"})
        cls.add("404", "GET", "/nothing")
        cls.add("404 reduced", "POST", "/v2.0/endpoint/inject",
                {"URLToken": "f" * 64, "userId": "u", "sessionId": "s", "text": "t"})
        cls.add("405", "POST", "/v2.0/organisations/chunkcount", "x", {"Content-Type": "text/plain"})
        cls.add("413", "POST", "/" + cls.tokens["echo"], "x" * 70_000, {"Content-Type": "text/plain"})

    def answer(self, name, status):
        result = self.results[name]
        self.assertNotIn("refused", result, f"{name}: the browser hid the answer from the page")
        self.assertEqual((result["status"], result["type"]), (status, "cors"), f"{name}: {result}")
        self.assertRegex(result["headers"]["x-trace-id"], "^[0-9a-f]{32}$")
        self.assertIn("traceparent", result["headers"])
        return result

    def problem(self, name, status):
        result = self.answer(name, status)
        body = json.loads(result["body"])
        self.assertEqual((body["status"], body["traceId"]), (status, result["headers"]["x-trace-id"]), name)
        return result, body

    def test_a_page_injects_with_all_headers(self):
        result = self.answer("inject", 200)
        self.assertEqual(result["body"], "Message was sent to AI for Flow processing")
        self.assertRegex(result["headers"]["x-inject-id"], "^[a-z0-9]{24}$")
        self.assertEqual(result["headers"]["x-trace-id"], TRACE)

    def test_a_page_sends_a_message_and_reads_the_outputs(self):
        for name in ("message", "message without preflight"):
            self.assertEqual(json.loads(self.answer(name, 200)["body"])["text"], "Hello")
        items = json.loads(self.answer("outputs", 200)["body"])["items"]
        self.assertEqual([item["text"] for item in items], ["from a page"])

    def test_a_page_reads_no_answer_to_a_request_with_cookies(self):
        for name in ("with cookies", "list with cookies"):
            self.assertEqual(self.results[name], {"refused": "TypeError"})

    def test_lists_and_their_headers_are_readable(self):
        for name in ("list by key", "list by query", "list by access token"):
            result = self.answer(name, 200)
            self.assertEqual(len(json.loads(result["body"])), 1)
            self.assertEqual(result["headers"]["x-total-count"], "3")
            self.assertRegex(result["headers"]["x-next-cursor"], "^[a-z0-9]{24}$")
            self.assertIn('rel="next"', result["headers"]["link"])
        self.assertTrue(self.answer("list as CSV", 200)["body"].startswith("_id,"))
        self.assertTrue(self.answer("list as XML", 200)["body"].startswith("<?xml"))
        self.assertRegex(self.answer("set-up", 201)["headers"]["location"], "^/v2.0/tasks/[a-z0-9]{24}$")

    def test_every_route_answers_the_preflight_and_the_page_reads_the_error(self):
        for method, path in ROUTES:
            result = self.answer(f"{method} {path}", 404)
            self.assertEqual(json.loads(result["body"])["status"], 404)

    def test_errors_are_readable(self):
        result, _ = self.problem("401", 401)
        self.assertTrue(result["headers"]["www-authenticate"].startswith("Bearer "))
        result, _ = self.problem("401 of the console", 401)
        self.assertTrue(result["headers"]["www-authenticate"].startswith("Basic "))
        self.problem("list by contact-center token", 401)
        _, body = self.problem("404", 404)
        self.assertIn("logLevel", body)
        reduced = json.loads(self.answer("404 reduced", 404)["body"])
        self.assertEqual(sorted(reduced), ["code", "detail", "status", "type"])
        result, _ = self.problem("405", 405)
        self.assertEqual(result["headers"]["allow"], "GET, HEAD, OPTIONS")
        self.problem("413", 413)


if __name__ == "__main__":
    unittest.main()
