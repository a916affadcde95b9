"""Python's parsers of JSON, XML and CSV read equal values from all representations of random documents.

CONVERSED_TEST_SEED repeats a run.
"""

import csv
import io
import json
import os
import random
import re
import sys
import unicodedata
import unittest
import xml.etree.ElementTree as ElementTree

from project_case import ProjectCase

NIL = "{http://www.w3.org/2001/XMLSchema-instance}nil"
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def as_cell(value):
    """Returns the expected cell of a CSV file for a JSON value that is not nested."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    return "'" + text if text.startswith(FORMULA) else text


def xml_text(text):
    """Replaces the characters that XML 1.0 can't hold."""
    def fits(c):
        return c in "\t\n\r" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c >= "\U00010000"
    return "".join(c if fits(c) else "\ufffd" for c in text)


def member_name(element):
    """Returns the name of a member. Decodes the escapes of characters that XML names can't hold."""
    return re.sub("_x([0-9A-F]{4,6})_", lambda found: chr(int(found.group(1), 16)), element.tag)


class RandomDocuments:
    """Random texts and values of JSON, rich in the special characters of each format."""

    ALPHABET = 'ab\\,;"\'<>&=+-@\t\r\n\x01\x1f\x7f\x85\u2028\ufffe\ufffdß漢\U0001f600]]> %{_x0041_'

    def __init__(self, seed):
        self.rounds = random.Random(seed)

    def character(self):
        if self.rounds.random() < 0.8:
            return self.rounds.choice(self.ALPHABET)
        code = self.rounds.randrange(1, 0x110000 - 0x800)
        return chr(code if code < 0xd800 else code + 0x800)  # skips the surrogates

    def text(self):
        return "".join(self.character() for _ in range(self.rounds.randrange(1, 12)))

    def name(self):
        """Returns a valid keyphrase or name: no control characters, no blanks at its ends."""
        return "." + "".join(c for c in self.text() if unicodedata.category(c) != "Cc") + "."

    def value(self, depth=0):
        kinds = ["null", "bool", "int", "float", "text"] + (["list", "dict"] if depth < 3 else [])
        kind = self.rounds.choice(kinds)
        if kind == "list":
            return [self.value(depth + 1) for _ in range(self.rounds.randrange(3))]
        if kind == "dict":
            return {self.rounds.choice(["_x0041_", "a_x", self.text()]): self.value(depth + 1)
                    for _ in range(self.rounds.randrange(3))}
        return {"null": None, "bool": self.rounds.random() < 0.5,
                "int": self.rounds.choice([self.rounds.randrange(-9, 9), 2**63 - 1, -2**63]),
                "float": self.rounds.choice([self.rounds.random(), 1e-300, 1.5e300]), "text": self.text()}[kind]


class Representations(ProjectCase):
    bundle = "conversed: 1\nproject: {name: Tests, locales: [en]}\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.project = cls.report["project"]["_id"]

    def setUp(self):
        self.seed = int(os.environ.get("CONVERSED_TEST_SEED", "0")) or random.randrange(1, 2**31)
        self.random = RandomDocuments(self.seed)
        print(f"{self.id()}: seed {self.seed}", file=sys.stderr)

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

    def check_list(self, path, items, total, item_name, xml_items):
        """Reads the list in each representation and compares the items. `xml_items` returns the items of the XML document."""
        hal, headers = self.get(path, query={"limit": 100}, Accept="application/hal+json")
        self.assertEqual(headers["Content-Type"], "application/hal+json")
        self.assertEqual((hal["_embedded"]["items"], hal["total"]), (items, total))
        text, headers = self.get(path, query={"limit": 100}, Accept="text/csv")
        self.assertEqual(headers["X-Total-Count"], str(total))
        self.check_csv(text, items)
        for media_type in ("application/xml", "text/xml"):
            text, headers = self.get(path, query={"limit": 100}, Accept=media_type)
            self.assertTrue(headers["Content-Type"].startswith(media_type))
            elements = xml_items(ElementTree.fromstring(text))
            self.assertEqual([element.tag for element in elements], [item_name] * len(items))
            for element, item in zip(elements, items):
                self.check_xml(element, item)

    def test_chunks(self):
        chunks = [{"text": self.random.text(), "data": {self.random.text(): self.random.value()}} for _ in range(90)]
        path = self.import_chunks("Chunks", chunks)
        page, _ = self.get(path, query={"limit": 100})
        items = page["items"]
        self.assertEqual([{"text": item["text"], "data": item["data"]} for item in items], chunks)

        def xml_items(root):
            self.assertEqual([child.tag for child in root], ["items", "total", "nextCursor", "previousCursor"])
            self.assertEqual(root.findtext("total"), "90")
            return list(root.find("items"))
        self.check_list(path, items, 90, "item", xml_items)

    def test_lexicon_entries(self):
        entries = {f"main {n} {self.random.name()}":
                   [f"{k} {self.random.name()}" for k in range(self.random.rounds.randrange(3))] for n in range(60)}
        data = {main: {"value": self.random.value()} for main in entries}
        report = self.import_project("Entries", lexicons=[{"name": "L", "slots": ["city"], "entries": [
            {"mainKeyphrase": main, "keyphrases": others, "slots": ["city"], "data": data[main]}
            for main, others in entries.items()]}])
        path = f"/v2.0/lexicons/{report['lexicons'][0]['_id']}/entries"
        items, _ = self.get(path, query={"limit": 100})
        self.assertEqual({item["mainKeyphrase"] for item in items}, set(entries))
        for item in items:
            self.assertEqual(json.loads(item["data"]), data[item["mainKeyphrase"]])
            values = [each["value"] for each in item["keyphrases"]["keyphrases"]]
            self.assertEqual(values, [item["mainKeyphrase"], *entries[item["mainKeyphrase"]]])

        def xml_items(root):
            self.assertEqual(root.tag, "lexiconEntries")
            return list(root)
        self.check_list(path, items, 60, "lexiconEntry", xml_items)

    def test_tokens(self):
        path = f"/v2.0/projects/{self.project}/snippets"
        for n in range(60):
            # A label has no control characters, and no blanks at its ends.
            name = "".join(c for c in self.random.text() if c >= " " and c != "\x7f")
            sent = {"label": f"{n} {name}".strip(" "), "script": self.random.text()}
            accept = self.random.rounds.choice(
                ["application/json", "application/hal+json", "application/xml", "text/xml", "text/csv"])
            status, answer, headers = self.ask("POST", path, sent, Accept=accept)
            self.assertEqual((status, headers.get_content_type()), (201, accept), answer)
            if accept.endswith("xml"):
                root = ElementTree.fromstring(answer)
                self.assertEqual(root.tag, "token")
                for name, value in sent.items():
                    self.check_xml(root.find(name), value)
            elif accept == "text/csv":
                row, = csv.DictReader(io.StringIO(answer, newline=""), strict=True)
                self.assertEqual({name: row[name] for name in sent},
                                 {name: as_cell(value) for name, value in sent.items()})
            else:
                self.assertEqual({name: answer[name] for name in sent}, sent)

    def test_members_tasks_and_confirmations(self):
        report = self.import_project("Objects", members=[
            {"email": "eve@example.com", "name": self.random.name(), "roles": [], "allowedLocales": ["en"]}])
        project, member = report["project"]["_id"], report["members"][0]["_id"]
        locale = report["project"]["locales"][0]["_id"]
        status, task, _ = self.ask("POST", f"/v2.0/projects/{project}/settings/proactive/setup")
        self.assertEqual(status, 201, task)
        self.ask("POST", f"/v2.0/tasks/{task['_id']}/cancel")
        _, watched, _ = self.ask("GET", f"/v2.0/tasks/{task['_id']}?wait=30")  # returns when the task has ended
        while watched["status"] not in ("done", "cancelled", "error"):
            _, watched, _ = self.ask("GET", f"/v2.0/tasks/{task['_id']}?wait=30")
        for root_name, request in (
                ("member", ("PATCH", f"/v2.0/projects/{project}/members/{member}",
                            {"allowedLocales": [{"localeId": locale}]})),
                ("task", ("GET", f"/v2.0/tasks/{task['_id']}")),
                ("confirmation", ("POST", "/v2.0/users/deprecatepassword", {"userId": member}))):
            status, value, _ = self.ask(*request)
            self.assertEqual(status, 200, value)
            _, hal, _ = self.ask(*request, Accept="application/hal+json")
            self.assertEqual(hal.pop("_links")["self"]["href"], request[1])
            self.assertEqual(hal, value)
            _, text, _ = self.ask(*request, Accept="text/csv")
            self.check_csv(text, [value])
            for media_type in ("application/xml", "text/xml"):
                _, text, _ = self.ask(*request, Accept=media_type)
                root = ElementTree.fromstring(text)
                self.assertEqual(root.tag, root_name)
                self.check_xml(root, value)


if __name__ == "__main__":
    unittest.main()
