"""Projects and what belongs to them, as API clients see them: the operations beside inject, their lists and
representations, through the built binaries. What is written is read back by Python's csv, json and xml."""

import csv
import io
import json
import os
import pathlib
import random
import re
import threading
import unittest
import urllib.parse
import xml.etree.ElementTree as ElementTree

from case import DaemonCase

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

NIL = "{http://www.w3.org/2001/XMLSchema-instance}nil"
FORMULA = ("=", "+", "-", "@", "\t")
MISSING = "z" * 24


def as_cell(value):
    """What a CSV reader has to find for a JSON value; nested ones are compared as JSON."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    return "'" + text if text.startswith(FORMULA) else text


def xml_text(text):
    """What XML 1.0 can carry of a text."""
    def fits(c):
        return c in "\t\n\r" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c >= "\U00010000"
    return "".join(c if fits(c) else "\ufffd" for c in text)


def member_name(element):
    """Undoes the escapes of characters that XML names can't hold."""
    return re.sub("_x([0-9A-F]{4,6})_", lambda found: chr(int(found.group(1), 16)), element.tag)


class Nine(DaemonCase):
    bundle = BUNDLE

    @classmethod
    def load(cls, text):
        path = pathlib.Path(cls.folder.name) / "bundle.yaml"
        path.write_text(text.replace("UPSTREAM", cls.upstream.url))
        cls.report = cls.daemon.ctl("import", str(path))
        cls.project = cls.report["project"]["_id"]
        return {endpoint["name"]: endpoint["urlToken"] for endpoint in cls.report["endpoints"]}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.keys = {name: cls.daemon.ctl("apikey", "create", "--name", name, "--user", f"{name}@example.com")["key"]
                    for name in ("eve", "bob")}
        cls.keys["admin"] = cls.key

    def ask(self, method, path, body=None, user="admin", query=None, **headers):
        """(status, parsed body or text, headers)."""
        if query:
            path += "?" + urllib.parse.urlencode(query)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.daemon.request(method, path, body, {"X-API-Key": self.keys[user], **headers})

    def get(self, path, user="admin", query=None, **headers):
        status, body, answered = self.ask("GET", path, None, user, query, **headers)
        self.assertEqual(status, 200, body)
        return body, answered

    def import_project(self, name, **parts):
        """Imports a bundle of its own; its report."""
        path = pathlib.Path(self.folder.name) / "own.json"
        path.write_text(json.dumps({"conversed": 1, "project": {"name": name, "locales": ["en"]}, **parts}))
        return self.daemon.ctl("import", str(path))

    def import_chunks(self, name, chunks):
        """Imports a source with these chunks; the path of their list."""
        report = self.import_project(name, knowledgeStores=[{"name": "S", "sources": [{"name": "C", "chunks": chunks}]}])
        store = report["knowledgeStores"][0]
        return f"/v2.0/knowledgestores/{store['_id']}/sources/{store['sources'][0]['_id']}/chunks"

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

    def test_flows_fail_at_once_where_their_connection_was_deleted(self):
        ids = {each["name"]: each["_id"] for each in self.report["connections"]}
        path = f"/v2.0/connections/{ids['other']}"
        self.assertEqual(self.ask("DELETE", path, user="eve")[0], 403)
        status, body, _ = self.ask("DELETE", path)
        self.assertEqual((status, body), (204, ""))
        self.assertEqual(self.ask("DELETE", path)[0], 404)
        self.assertEqual(self.say("careful", "deleted", "x")[1]["text"], "failed: connection_deleted")

    def test_a_flow_without_a_branch_for_errors_says_sorry(self):
        report = self.import_project(
            "Broken", connections=[{"name": "crm", "type": "httpBearer", "fields": {"token": "${CRM_TOKEN}"}}],
            flows=[{"name": "F", "nodes": [{"httpRequest": {"connection": "crm", "url": self.upstream.url}}]}],
            endpoints=[{"name": "e", "flow": "F", "errorText": "Sorry."}])
        self.assertEqual(self.ask("DELETE", f"/v2.0/connections/{report['connections'][0]['_id']}")[0], 204)
        status, answer, _ = self.daemon.request("POST", "/" + report["endpoints"][0]["urlToken"],
                                                {"userId": "u", "sessionId": "s", "text": "x"})
        self.assertEqual((status, answer["text"]), (200, "Sorry."))

    def test_foreign_and_missing_are_404_and_wrong_ids_400(self):
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
        """All items from one end to the other, by cursors."""
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

    def test_imports_meanwhile_neither_repeat_nor_skip(self):
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

    def test_entries_travel_with_link_headers(self):
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

    # --- Representations --------------------------------------------------------------------------

    ALPHABET = 'ab\\,;"\'<>&=+-@\t\r\n\x01\x1f\x7f\x85\u2028\ufffe\ufffdß漢\U0001f600]]> %{_x0041_'

    def random_text(self, rounds):
        return "".join(rounds.choice(self.ALPHABET) for _ in range(rounds.randrange(1, 12)))

    def random_value(self, rounds, depth=0):
        kinds = ["null", "bool", "int", "float", "text"] + (["list", "dict"] if depth < 3 else [])
        kind = rounds.choice(kinds)
        if kind == "list":
            return [self.random_value(rounds, depth + 1) for _ in range(rounds.randrange(3))]
        if kind == "dict":
            return {rounds.choice(["_x0041_", "a_x", self.random_text(rounds)]): self.random_value(rounds, depth + 1) for _ in range(rounds.randrange(3))}
        return {"null": None, "bool": rounds.random() < 0.5, "int": rounds.randrange(-9, 9), "float": rounds.random(),
                "text": self.random_text(rounds)}[kind]

    def check_xml(self, element, value):
        if value is None:
            self.assertEqual(element.get(NIL), "true")
            return
        self.assertIsNone(element.get(NIL))
        if isinstance(value, dict):
            elements = list(element)
            for name, member in value.items():
                for each in member if isinstance(member, list) else [member]:
                    child = elements.pop(0)
                    self.assertEqual(member_name(child), name or "_")
                    self.check_xml(child, each)
            self.assertEqual(elements, [])
        elif isinstance(value, list):
            self.assertEqual([child.tag for child in element], ["item"] * len(value))
            for child, each in zip(element, value):
                self.check_xml(child, each)
        elif isinstance(value, str):
            self.assertEqual(element.text or "", xml_text(value))
        else:
            self.assertEqual(json.loads(element.text), value)

    def check_csv(self, text, items):
        rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
        self.assertEqual(len(rows), len(items))
        for row, item in zip(rows, items):
            self.assertEqual(list(row), list(item))
            for name, value in item.items():
                if isinstance(value, (dict, list)):
                    self.assertEqual(json.loads(row[name]), value)
                else:
                    self.assertEqual(row[name], as_cell(value))

    def test_all_representations_are_read_back_equal_by_others(self):
        seed = int(os.environ.get("CONVERSED_TEST_SEED", "0")) or random.randrange(1, 2**31)
        rounds = random.Random(seed)
        with self.subTest(seed=seed):
            chunks = [{"text": self.random_text(rounds), "data": {self.random_text(rounds): self.random_value(rounds)}}
                      for _ in range(90)]
            path = self.import_chunks("Random", chunks)
            page, _ = self.get(path, query={"limit": 100})
            items = page["items"]
            self.assertEqual([{"text": item["text"], "data": item["data"]} for item in items], chunks)

            hal, headers = self.get(path, query={"limit": 100}, Accept="application/hal+json")
            self.assertEqual(headers["Content-Type"], "application/hal+json")
            self.assertEqual((hal["_embedded"]["items"], hal["total"]), (items, 90))

            text, headers = self.get(path, query={"limit": 100}, Accept="text/csv")
            self.assertEqual(headers["X-Total-Count"], "90")
            self.check_csv(text, items)

            for media_type in ("application/xml", "text/xml"):
                text, headers = self.get(path, query={"limit": 100}, Accept=media_type)
                self.assertTrue(headers["Content-Type"].startswith(media_type))
                root = ElementTree.fromstring(text)
                self.assertEqual([child.tag for child in root], ["items", "total", "nextCursor", "previousCursor"])
                self.assertEqual(root.findtext("total"), "90")
                self.assertEqual(len(root.find("items")), 90)
                for element, item in zip(root.find("items"), items):
                    self.assertEqual(element.tag, "item")
                    self.check_xml(element, item)

    def test_entries_and_tasks_have_all_representations(self):
        path = f"/v2.0/lexicons/{self.report['lexicons'][0]['_id']}/entries"
        items, _ = self.get(path)
        self.assertEqual(items[0]["mainKeyphrase"], "Paris")
        self.check_csv(self.get(path, Accept="text/csv")[0], items)
        root = ElementTree.fromstring(self.get(path, Accept="application/xml")[0])
        self.assertEqual((root.tag, [child.tag for child in root]), ("lexiconEntries", ["lexiconEntry"]))
        self.check_xml(root[0], items[0])
        hal, _ = self.get(path, Accept="application/hal+json")
        self.assertEqual((hal["_embedded"]["items"], hal["_links"]["self"]["href"]), (items, path))

    # --- Tasks ------------------------------------------------------------------------------------

    def test_a_set_up_is_a_task_that_is_watched_and_cancelled(self):
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
        self.assertEqual(self.ask("POST", task + "/cancel", user="bob")[0], 404, "no member of that project")

    def test_waiting_for_a_task_ends_when_it_is_cancelled(self):
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

    def test_a_notify_is_delivered_past_the_flow_while_a_call_is_pending(self):
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

    def test_a_keyed_notify_is_said_once(self):
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

    def test_a_feature_that_is_switched_off_is_501_and_a_used_up_plan_402(self):
        project = self.daemon.ctl("import", str(pathlib.Path(self.folder.name) / "bundle.yaml"))["project"]["_id"]
        headers = {"X-API-Key": self.key}
        status, body, _ = self.daemon.request("POST", f"/v2.0/projects/{project}/settings/proactive/setup",
                                              headers=headers)
        self.assertEqual((status, body["code"]), (501, 1009))
        statuses = [self.daemon.request("POST", f"/v2.0/projects/{project}/snippets", {}, headers)[0] for _ in range(3)]
        self.assertEqual(statuses, [201, 201, 402])


if __name__ == "__main__":
    unittest.main()
