"""The operations of projects over HTTP: Tokens, members, Connections, lists, tasks and notify."""

import json
import random
import threading
import unittest
import xml.etree.ElementTree as ElementTree

from case import DaemonCase
from project_case import ProjectCase

BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en, de]}
members:
  - {email: eve@example.com, name: Eve, roles: [tokenAdmin], allowedLocales: [en]}
  - {email: bob@example.com, name: Bob, roles: [conversationAdmin]}
connections:
  - {name: crm, type: httpBearer, fields: {token: "${CRM_TOKEN}"}}
  - {name: other, type: httpBearer, fields: {token: "${CRM_TOKEN}"}}
lexicons: [{name: Cities, slots: [city], entries: [{mainKeyphrase: Paris, keyphrases: [paree], slots: [city]}]}]
knowledgeStores: [{name: Manual, sources: [{name: FAQ, chunks: [{text: "Returns take 14 days.", data: {page: 3}}]}]}]
flows:
  - name: Lookup
    nodes:
      - httpRequest: {connection: crm, method: POST, url: "UPSTREAM/orders", storeIn: context.order, timeout: 30s}
      - say: "{{greeting}} {{context.order.state}}"
  - name: Careful
    nodes:
      - httpRequest: {connection: other, method: GET, url: "UPSTREAM/orders",
                      onError: [{say: "failed: {{input.error.code}}"}]}
endpoints:
  - {name: lookup, flow: Lookup, errorText: "Sorry.", output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
  - {name: careful, flow: Careful}
"""

MISSING = "z" * 24


class Nine(ProjectCase):
    bundle = BUNDLE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.project = cls.report["project"]["_id"]
        for name in ("eve", "bob"):
            cls.add_key(name)

    # --- One by one -------------------------------------------------------------------------------

    def test_a_token_is_created_and_used_by_flows(self):
        path = f"/v2.0/projects/{self.project}/snippets"
        status, token, _ = self.ask("POST", path, {"label": "greeting", "script": "Hello!"}, user="eve")
        self.assertEqual(status, 201, token)
        self.assertEqual((token["label"], token["script"], token["projectId"]), ("greeting", "Hello!", self.project))
        self.assertEqual(self.say("lookup", "token", "x")[1]["text"], "Hello! shipped")
        self.assertEqual(self.ask("POST", "/new" + path, {"label": "greeting"})[0], 409)
        self.assertEqual(self.ask("POST", path, {"label": "x"}, user="bob")[0], 403)
        for body, accept, first in ((json.dumps({"label": "a"}), "application/xml", "<?xml"),
                                    (json.dumps({"label": "b"}), "text/csv;q=1, */*;q=0.1", "_id,label"),
                                    (json.dumps({"label": "c"}), "text/xml", "<?xml")):
            status, text, headers = self.ask("POST", path, body, Accept=accept)
            self.assertEqual(status, 201)
            self.assertTrue(text.startswith(first), text)
            self.assertTrue(headers["Content-Type"].startswith(accept.split(";")[0]), headers["Content-Type"])
        _, hal, _ = self.ask("POST", "/new" + path, {}, Accept="application/hal+json")
        self.assertEqual(hal["_links"]["self"]["href"], "/new" + path)

    def test_a_member_is_updated(self):
        eve = next(m["_id"] for m in self.report["members"] if m["email"] == "eve@example.com")
        german = next(each["_id"] for each in self.report["project"]["locales"] if each["name"] == "de")
        path = f"/v2.0/projects/{self.project}/members/{eve}"
        status, member, _ = self.ask("PATCH", path, {"allowedLocales": [{"localeId": german}]})
        self.assertEqual((status, member), (200, {"_id": eve, "name": "Eve", "roles": ["tokenAdmin"],
                                                  "allowedLocales": [{"localeId": german}]}))
        self.assertEqual(self.ask("PATCH", path, {"allowedLocales": [{"localeId": MISSING}]})[0], 400)
        self.assertEqual(self.ask("PATCH", path, {"unknown": 1})[0], 400)
        self.assertEqual(self.ask("PATCH", path.replace(eve, MISSING), {"allowedLocales": []})[0], 404)
        status, text, _ = self.ask("PATCH", path, {"allowedLocales": [{"localeId": german}]}, Accept="application/xml")
        self.assertEqual(ElementTree.fromstring(text).findtext("allowedLocales/localeId"), german)

    def test_a_call_without_its_connection_takes_the_error_branch(self):
        ids = {each["name"]: each["_id"] for each in self.report["connections"]}
        path = f"/v2.0/connections/{ids['other']}"
        self.assertEqual(self.ask("DELETE", path, user="eve")[0], 403)
        status, body, _ = self.ask("DELETE", path)
        self.assertEqual((status, body), (204, ""))
        self.assertEqual(self.ask("DELETE", path)[0], 404)
        self.assertEqual(self.say("careful", "deleted", "x")[1]["text"], "failed: connection_deleted")

    def test_a_failed_call_without_an_error_branch_sends_the_endpoints_error_text(self):
        report = self.import_project(
            "Broken", connections=[{"name": "crm", "type": "httpBearer", "fields": {"token": "${CRM_TOKEN}"}}],
            flows=[{"name": "F", "nodes": [{"httpRequest": {"connection": "crm", "url": self.upstream.url}}]}],
            endpoints=[{"name": "e", "flow": "F", "errorText": "Sorry."}])
        self.assertEqual(self.ask("DELETE", f"/v2.0/connections/{report['connections'][0]['_id']}")[0], 204)
        status, answer, _ = self.daemon.request("POST", "/" + report["endpoints"][0]["urlToken"],
                                                {"userId": "u", "sessionId": "s", "text": "x"})
        self.assertEqual((status, answer["text"]), (200, "Sorry."))

    def test_missing_objects_are_404_and_malformed_ids_400(self):
        routes = [("POST", "/v2.0/projects/{}/snippets"), ("PATCH", "/v2.0/projects/{}/members/" + MISSING),
                  ("POST", "/v2.0/projects/{}/settings/proactive/setup"), ("DELETE", "/v2.0/connections/{}"),
                  ("GET", "/v2.0/lexicons/{}/entries"), ("GET", "/v2.0/tasks/{}"), ("POST", "/v2.0/tasks/{}/cancel"),
                  ("GET", "/v2.0/knowledgestores/{}/sources/" + MISSING + "/chunks")]
        for method, route in routes:
            for base in ("", "/new"):
                status, body, _ = self.ask(method, base + route.format(MISSING), {} if method != "GET" else None)
                self.assertEqual((status, body["logLevel"]), (404, "error"), route)
                self.assertEqual(self.ask(method, base + route.format("UPPER"))[0], 400, route)
            self.assertEqual(self.daemon.request(method, route.format(MISSING))[0], 401, route)
            status, _, headers = self.ask("PUT", route.format(MISSING))
            self.assertEqual(status, 405)
            self.assertIn(method, headers["Allow"])

    # --- Lists ------------------------------------------------------------------------------------

    def test_chunks_are_counted(self):
        before, _ = self.get("/v2.0/organisations/chunkcount")
        self.import_chunks("Counted", [{"text": f"{n}"} for n in range(17)])
        after, _ = self.get("/v2.0/organisations/chunkcount")
        self.assertEqual(after["chunkCount"] - before["chunkCount"], 17)

    def walk(self, path, direction="next", start=None, **query):
        """Follows the cursors to the end of the list. Returns all items and the last page."""
        items = []
        cursor = start
        while True:
            page, _ = self.get(path, query={**query, **({direction: cursor} if cursor else {})})
            items = items + page["items"] if direction == "next" else page["items"] + items
            cursor = page[direction + "Cursor"]
            if cursor is None:
                return items, page

    def test_cursors_lead_through_the_whole_list_and_back(self):
        texts = [f"chunk {n}" for n in range(230)]
        path = self.import_chunks("Walked", [{"text": text} for text in texts])
        items, last = self.walk(path, limit=20)
        self.assertEqual([item["text"] for item in items], texts)
        self.assertEqual(last["total"], 230)
        back, first = self.walk(path, "previous", last["previousCursor"], limit=20)
        self.assertEqual([item["text"] for item in back], texts[:220])
        self.assertIsNone(first["previousCursor"])
        by_id, _ = self.walk(path, limit=100, sort="_id:desc")
        self.assertEqual([item["_id"] for item in by_id], sorted((item["_id"] for item in items), reverse=True))
        page, _ = self.get(path, query={"skip": 228})
        self.assertEqual([item["text"] for item in page["items"]], texts[228:])

    def test_imports_during_a_walk_neither_repeat_nor_skip_items(self):
        rounds = random.Random(7)
        for sort in ("", "_id:asc", "order:desc", "text:asc"):
            texts = [f"{rounds.random()}" for _ in range(60)]
            path = self.import_chunks("Moving", [{"text": text} for text in texts])
            query = {"limit": 7, **({"sort": sort} if sort else {})}
            kept = set(texts)
            seen, cursor = [], None
            for _ in range(200):
                page, _ = self.get(path, query={**query, **({"next": cursor} if cursor else {})})
                seen += [item["text"] for item in page["items"]]
                cursor = page["nextCursor"]
                if cursor is None:
                    break
                gone = set(rounds.sample(texts, 2)) - {seen[-1]}
                kept -= gone
                texts = [text for text in texts if text not in gone]
                texts.insert(rounds.randrange(len(texts) + 1), f"{rounds.random()}")
                self.import_chunks("Moving", [{"text": text} for text in texts])
            self.assertIsNone(cursor)
            self.assertEqual(len(seen), len(set(seen)), sort)
            self.assertEqual(kept - set(seen), set(), sort)

    def test_filters_fold_case_and_sorts_take_several_fields(self):
        path = self.import_chunks("Filtered", [{"text": text} for text in (
            "Die Hauptstraße", "nothing", "STRASSENBAHN", "ΟΔΥΣΣΕΥΣ", "100% _ [x]")])
        for wanted, found in (("strasse", 2), ("STRAßE", 2), ("οδυσσευς", 1), ("% _ [", 1), ("%", 1), ("absent", 0)):
            page, _ = self.get(path, query={"filter": wanted, "sort": "disabled:asc,text:desc"})
            self.assertEqual(page["total"], found, wanted)
            self.assertEqual(page["items"], sorted(page["items"], key=lambda item: item["text"], reverse=True))
        page, _ = self.get(path, query={"filter": "s", "limit": 1})
        rest, _ = self.get(path, query={"next": page["nextCursor"]})
        self.assertEqual(page["total"], rest["total"])
        self.assertEqual(self.ask("GET", path, query={"next": page["nextCursor"], "filter": "t"})[0], 400)
        self.assertEqual(self.ask("GET", path, query={"sort": "data:asc"})[0], 400)

    def test_a_list_under_the_base_path_has_its_cursors_in_headers(self):
        report = self.import_project("Words", lexicons=[{"name": "W", "slots": [], "entries": [
            {"mainKeyphrase": f"word {n}"} for n in range(30)]}])
        path = f"/new/v2.0/lexicons/{report['lexicons'][0]['_id']}/entries"
        items, headers = self.get(path, query={"api_key": self.key, "limit": 25})
        self.assertEqual((len(items), headers["X-Total-Count"], headers["X-Previous-Cursor"]), (25, "30", None))
        link = headers["Link"]
        self.assertNotIn(self.key, link)
        rest, headers = self.get(link[link.index("<") + 1:link.index(">")])
        self.assertEqual(len({item["_id"] for item in items + rest}), 30)
        self.assertIsNone(headers["X-Next-Cursor"])
        self.assertIn('rel="prev"', headers["Link"])
        self.assertEqual(headers["Access-Control-Allow-Origin"], "*")
        self.assertEqual(self.ask("GET", path, query={"projectId": self.project})[0], 404)

    # --- Tasks ------------------------------------------------------------------------------------

    def test_a_set_up_is_a_task_that_only_members_of_the_project_cancel(self):
        project = self.import_project("SetUp")["project"]["_id"]
        path = f"/new/v2.0/projects/{project}/settings/proactive/setup"
        key = {"Idempotency_Key": "first"}
        status, job, headers = self.ask("POST", path, **key)
        self.assertEqual((status, job["type"]), (201, "proactiveSetup"), job)
        task = headers["Location"]
        self.assertEqual(task, f"/new/v2.0/tasks/{job['_id']}")
        self.assertEqual(self.ask("POST", path, **key)[:2], (201, job))
        status, problem, _ = self.ask("POST", path)
        self.assertEqual((status, problem["details"]), (409, {"taskId": job["_id"]}))
        for name, value in self.get(task)[0].items():
            if name in ("_id", "type", "name", "createdAt"):
                self.assertEqual(value, job[name])
        root = ElementTree.fromstring(self.get(task, Accept="text/xml")[0])
        self.assertEqual((root.tag, root.findtext("_id")), ("task", job["_id"]))
        listed, _ = self.get("/v2.0/tasks", query={"projectId": project})
        self.assertEqual([item["_id"] for item in listed["items"]], [job["_id"]])
        self.assertEqual(self.ask("POST", task + "/cancel", user="bob")[0], 404, "a user who is no member cancelled the task")

    def test_a_wait_for_a_task_ends_when_the_task_is_cancelled(self):
        project = self.import_project("Waited")["project"]["_id"]
        _, job, _ = self.ask("POST", f"/v2.0/projects/{project}/settings/proactive/setup")
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(self.get(f"/v2.0/tasks/{job['_id']}?wait=30")[0]))
        waiting.start()
        status, cancelled, _ = self.ask("POST", f"/v2.0/tasks/{job['_id']}/cancel")
        waiting.join()
        self.assertIn(status, (200, 409), cancelled)
        self.assertEqual(answers[0]["_id"], job["_id"])

    # --- Notify -----------------------------------------------------------------------------------

    def notify(self, session, text, path="/v2.0/endpoint/notify", **headers):
        body = {"URLToken": self.tokens["lookup"], "userId": f"user of {session}", "sessionId": session, "text": text}
        return self.ask("POST", path, body, user="bob", **headers)

    def test_a_notify_is_delivered_without_the_flow_while_a_call_is_pending(self):
        self.upstream.requests.clear()
        self.upstream.open.clear()
        self.inject("lookup", "said", text="look it up")
        self.assertTrue(self.upstream.wait_for(1))
        status, text, headers = self.notify("said", "Please hold the line.")
        self.assertEqual((status, text), (200, "Message was sent to the user as an AI Agent output"))
        item, = self.outputs("lookup", "said", wait=30)
        self.assertEqual((item["text"], item["source"]), ("Please hold the line.", "bot"))
        self.assertTrue(self.receiver.wait_for(
            lambda all: any(body["output"]["text"] == "Please hold the line." for _, _, body in all), 30))
        self.upstream.open.set()
        self.daemon.wait_idle()
        self.assertEqual(len(self.texts("lookup", "said")), 2)

    def test_a_keyed_notify_is_sent_once(self):
        for _ in range(3):
            self.assertEqual(self.notify("once", "x", Idempotency_Key="k")[0], 200)
        self.assertEqual(self.notify("once", "y", Idempotency_Key="k")[0], 409)
        self.assertEqual(self.notify("once", "z", path=f"/notify/{self.tokens['lookup']}")[0], 200)
        self.daemon.wait_idle()
        self.assertEqual(self.texts("lookup", "once"), ["x", "z"])
        status, body, _ = self.ask("POST", "/v2.0/endpoint/notify", {"text": "x"})
        self.assertEqual((status, sorted(body)), (400, ["code", "detail", "status", "type"]))


class Limited(DaemonCase):
    bundle = "conversed: 1\nproject: {name: Tests, locales: [en]}\n"
    settings = "proactive: {enabled: false}\nquota: {tokens: 2}\n"

    def test_a_disabled_feature_is_501_and_a_used_up_quota_is_402(self):
        project = self.report["project"]["_id"]
        headers = {"X-API-Key": self.key}
        status, body, _ = self.daemon.request("POST", f"/v2.0/projects/{project}/settings/proactive/setup",
                                              headers=headers)
        self.assertEqual((status, body["code"]), (501, 1009))
        statuses = [self.daemon.request("POST", f"/v2.0/projects/{project}/snippets", {}, headers)[0] for _ in range(3)]
        self.assertEqual(statuses, [201, 201, 402])


if __name__ == "__main__":
    unittest.main()
