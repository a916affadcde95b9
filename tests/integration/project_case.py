"""Shared by the tests of projects and their lists: requests of several users, and imports of generated bundles."""

import json
import pathlib
import urllib.parse

from case import DaemonCase


class ProjectCase(DaemonCase):
    """`keys` has one API key per user. The user "admin" has a key at the start."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.keys = {"admin": cls.key}

    @classmethod
    def add_key(cls, name):
        cls.keys[name] = cls.daemon.ctl("apikey", "create", "--name", name, "--user", f"{name}@example.com")["key"]

    def ask(self, method, path, body=None, user="admin", query=None, **headers):
        """Returns (status, parsed body or text, headers)."""
        if query:
            path += "?" + urllib.parse.urlencode(query)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.daemon.request(method, path, body, {"X-API-Key": self.keys[user], **headers})

    def get(self, path, user="admin", query=None, **headers):
        status, body, answered = self.ask("GET", path, None, user, query, **headers)
        self.assertEqual(status, 200, body)
        return body, answered

    def import_project(self, name, **parts):
        """Imports a new project of this name. Returns the report."""
        path = pathlib.Path(self.folder.name) / "own.json"
        path.write_text(json.dumps({"conversed": 1, "project": {"name": name, "locales": ["en"]}, **parts}))
        return self.import_file(path)

    def import_chunks(self, name, chunks):
        """Imports a source with these chunks. Returns the path of their list."""
        report = self.import_project(name, knowledgeStores=[{"name": "S", "sources": [{"name": "C", "chunks": chunks}]}])
        store = report["knowledgeStores"][0]
        return f"/v2.0/knowledgestores/{store['_id']}/sources/{store['sources'][0]['_id']}/chunks"
