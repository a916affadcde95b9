"""OAuth 2.0 and contact-center tokens over HTTP: both grants, refresh, reuse, revocation, PKCE, lock-out."""

import base64
import hashlib
import html.parser
import json
import pathlib
import re
import secrets
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

from case import ECHO, DaemonCase
from daemon_process import ORGANISATION, PASSWORD

REDIRECT = "https://shop.example/callback?from=conversed"
ANN, ANN_PASSWORD = "ann@example.com", "ann's own pass phrase"


def b64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Page(html.parser.HTMLParser):
    """Parses a page with one form: its action, its method, its fields, and the count of scripts."""

    def __init__(self, text):
        super().__init__()
        self.action, self.method, self.fields, self.scripts = None, None, {}, 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.scripts += tag == "script" or any(name.startswith("on") for name in attributes)
        if tag == "form":
            self.action, self.method = attributes.get("action", ""), attributes.get("method")
        elif tag == "input":
            self.fields[attributes["name"]] = attributes.get("value", "")


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


OPENER = urllib.request.build_opener(NoRedirect)


class RsaKey:
    """An RSA key pair. The command openssl makes it and signs with it."""

    def __init__(self, folder, name):
        self.path, self.name = pathlib.Path(folder) / f"{name}.pem", name
        subprocess.run(["openssl", "genrsa", "-out", self.path, "2048"], check=True, capture_output=True)

    def jwk(self):
        out = subprocess.run(["openssl", "rsa", "-in", self.path, "-noout", "-modulus"], check=True,
                             capture_output=True, text=True).stdout
        modulus = bytes.fromhex(re.search("Modulus=([0-9A-F]+)", out).group(1))
        return {"kty": "RSA", "kid": self.name, "use": "sig", "alg": "RS256", "n": b64url(modulus), "e": "AQAB"}

    def sign(self, claims, **header):
        text = ".".join(b64url(json.dumps(part).encode())
                        for part in ({"alg": "RS256", "typ": "JWT", "kid": self.name, **header}, claims))
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.path], input=text.encode(),
                                   check=True, capture_output=True).stdout
        return f"{text}.{b64url(signature)}"


class OAuth(DaemonCase):
    bundle = ECHO

    @classmethod
    def setUpClass(cls):
        keys = tempfile.TemporaryDirectory(prefix="conversed-keys-")
        cls.addClassCleanup(keys.cleanup)
        cls.center, cls.stranger = RsaKey(keys.name, "center"), RsaKey(keys.name, "stranger")
        jwks = pathlib.Path(keys.name) / "jwks.json"
        jwks.write_text(json.dumps({"keys": [cls.center.jwk()]}))
        cls.settings = (f"contact_center: {{jwks_file: {jwks}, audience: conversed, organisation: {ORGANISATION}}}\n"
                        "sign_in: {account_failures: 5, lockout: 1h}\n")
        super().setUpClass()
        cls.url = f"http://127.0.0.1:{cls.daemon.ports['api']}"
        cls.user = cls.daemon.ctl("user", "add", ANN, "--name", "Ann", "--roles", "conversationAdmin",
                                  "--project", "Tests", "--password-stdin", input=ANN_PASSWORD)
        cls.shop = cls.daemon.ctl("oauth-client", "add", "--name", "Shop", "--redirect-uri", REDIRECT,
                                  "--redirect-uri", "https://shop.example/other", "--password-grant")
        cls.app = cls.daemon.ctl("oauth-client", "add", "--name", "App", "--public", "--redirect-uri", REDIRECT)

    def fetch(self, path, form=None, headers=None):
        """Sends a GET, or with `form` a POST. Returns (status, body as text, headers)."""
        body = urllib.parse.urlencode(form).encode() if form is not None else None
        request = urllib.request.Request(urllib.parse.urljoin(self.url, path), body, headers or {})
        try:
            with OPENER.open(request, timeout=60) as answer:
                return answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers

    def token(self, expected=200, headers=None, **form):
        status, text, answered = self.fetch("/auth/oauth2/token", form, headers)
        self.assertEqual(status, expected, text)
        self.assertEqual(answered["Cache-Control"], "no-store")
        self.assertEqual(answered.get_content_type(), "application/json")
        body = json.loads(text)
        if expected >= 400:
            for field in ("error", "error_description", "type", "title", "status", "detail", "code", "traceId"):
                self.assertIn(field, body)
        return body

    def as_shop(self):
        return {"client_id": self.shop["clientId"], "client_secret": self.shop["clientSecret"]}

    def sign_in(self, username=ANN, password=ANN_PASSWORD, expected=200):
        return self.token(expected, grant_type="password", username=username, password=password, **self.as_shop())

    def status_with(self, headers):
        """Injects with these credentials. Returns the status."""
        body = {"URLToken": self.tokens["echo"], "userId": "u", "sessionId": "s", "text": "t"}
        return self.daemon.request("POST", "/v2.0/endpoint/inject", body, headers)[0]

    def opens(self, access_token):
        status = self.status_with({"Authorization": f"Bearer {access_token}"})
        self.assertIn(status, (200, 401))
        return status == 200

    def authorize_url(self, client, base="", **changes):
        query = {"response_type": "code", "client_id": client["clientId"], "redirect_uri": REDIRECT,
                 "state": "a state & more", **changes}
        return f"{base}/auth/oauth2/authorize?" + urllib.parse.urlencode(
            {name: value for name, value in query.items() if value is not None})

    def code(self, client, base="", **changes):
        """Signs in at the page, as a browser does. Returns the code of the redirect."""
        url = self.authorize_url(client, base, **changes)
        status, text, headers = self.fetch(url)
        self.assertEqual(status, 200, text)
        page = Page(text)
        self.assertEqual((page.method, page.scripts), ("post", 0))
        self.assertLessEqual({"username", "password"}, set(page.fields))
        self.assertEqual(headers["X-Frame-Options"], "DENY")
        self.assertIn("frame-ancestors 'none'", headers["Content-Security-Policy"])
        target = urllib.parse.urljoin(url, page.action)
        status, text, headers = self.fetch(target, {**page.fields, "username": ANN, "password": ANN_PASSWORD},
                                           {"Origin": self.url})
        self.assertEqual(status, 303, text)
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(headers["Location"]).query)
        self.assertTrue(headers["Location"].startswith(REDIRECT + "&code="), headers["Location"])
        self.assertEqual(query["state"], ["a state & more"])
        return query["code"][0]

    def test_a_second_use_of_a_refresh_token_revokes_all_tokens_of_the_sign_in(self):
        tokens = self.sign_in()
        self.assertEqual((tokens["token_type"], tokens["expires_in"]), ("Bearer", 3600))
        self.assertTrue(self.opens(tokens["access_token"]))
        renewed = self.token(grant_type="refresh_token", refresh_token=tokens["refresh_token"], **self.as_shop())
        self.assertTrue(self.opens(renewed["access_token"]))
        refused = self.token(400, grant_type="refresh_token", refresh_token=tokens["refresh_token"], **self.as_shop())
        self.assertEqual(refused["error"], "invalid_grant")
        self.assertFalse(self.opens(tokens["access_token"]))
        self.assertFalse(self.opens(renewed["access_token"]))
        self.token(400, grant_type="refresh_token", refresh_token=renewed["refresh_token"], **self.as_shop())

    def test_a_client_may_send_its_secret_by_basic_under_the_base_path(self):
        basic = base64.b64encode(f"{self.shop['clientId']}:{self.shop['clientSecret']}".encode()).decode()
        status, text, _ = self.fetch("/new/auth/oauth2/token", {
            "grant_type": "password", "username": ANN, "password": ANN_PASSWORD, "scope": "", "unknown": "x"},
            {"Authorization": f"Basic {basic}"})
        self.assertEqual(status, 200, text)
        self.assertTrue(self.opens(json.loads(text)["access_token"]))

    def test_wrong_clients_and_forms_are_refused(self):
        good = {"grant_type": "password", "username": ANN, "password": ANN_PASSWORD}
        wrong = {**self.as_shop(), "client_secret": "wrong"}
        status, _, headers = self.fetch("/auth/oauth2/token", {**good, **wrong})
        self.assertEqual((status, headers["WWW-Authenticate"].split()[0]), (401, "Basic"))
        for expected, error, form in [
                (401, "invalid_client", {**good, **wrong}), (401, "invalid_client", good),
                (401, "invalid_client", {**good, "client_id": self.shop["clientId"]}),
                (400, "unauthorized_client", {**good, "client_id": self.app["clientId"]}),
                (400, "unsupported_grant_type", {**good, **self.as_shop(), "grant_type": "client_credentials"}),
                (400, "invalid_request", {**self.as_shop(), "grant_type": "password", "username": ANN}),
                (400, "invalid_request", self.as_shop())]:
            with self.subTest(error=error, form=form):
                self.assertEqual(self.token(expected, **form)["error"], error)
        twice = urllib.parse.urlencode([*{**good, **self.as_shop()}.items(), ("username", "other")])
        status, answer, _ = self.daemon.request("POST", "/auth/oauth2/token", twice,
                                                {"Content-Type": "application/x-www-form-urlencoded"})
        self.assertEqual((status, answer["error"]), (400, "invalid_request"))

    def test_code_grant_of_a_confidential_client(self):
        code = self.code(self.shop)
        tokens = self.token(grant_type="authorization_code", code=code, redirect_uri=REDIRECT, **self.as_shop())
        self.assertTrue(self.opens(tokens["access_token"]))
        renewed = self.token(grant_type="refresh_token", refresh_token=tokens["refresh_token"], **self.as_shop())
        self.assertTrue(self.opens(renewed["access_token"]))
        again = self.token(400, grant_type="authorization_code", code=code, redirect_uri=REDIRECT, **self.as_shop())
        self.assertEqual(again["error"], "invalid_grant")
        self.assertFalse(self.opens(renewed["access_token"]), "a second use of the code did not revoke the tokens")

    def test_code_grant_of_a_public_client_with_pkce(self):
        verifier = secrets.token_urlsafe(48)
        challenge = b64url(hashlib.sha256(verifier.encode()).digest())
        form = {"grant_type": "authorization_code", "redirect_uri": REDIRECT, "client_id": self.app["clientId"]}
        code = self.code(self.app, "/new", code_challenge=challenge, code_challenge_method="S256")
        for change in [{"code_verifier": secrets.token_urlsafe(48)}, {"code_verifier": challenge}, {},
                       {"code_verifier": verifier, "redirect_uri": "https://shop.example/other"},
                       {"code_verifier": verifier, **self.as_shop()}]:
            with self.subTest(change=change):
                refused = self.token(400, **{**form, "code": code, **change})
                self.assertEqual(refused["error"], "invalid_grant")
        tokens = self.token(code=code, code_verifier=verifier, **form)
        self.assertTrue(self.opens(tokens["access_token"]))

    def test_the_sign_in_page_refuses_wrong_requests(self):
        challenge = {"code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method": "S256"}
        for changes in [{}, {**challenge, "code_challenge_method": None}, {**challenge, "code_challenge": "x"},
                        {**challenge, "code_challenge_method": "plain"}, {**challenge, "response_type": "token"}]:
            with self.subTest(changes=changes):
                status, _, headers = self.fetch(self.authorize_url(self.app, **changes))
                query = urllib.parse.parse_qs(urllib.parse.urlsplit(headers["Location"]).query)
                self.assertEqual((status, query["state"]), (303, ["a state & more"]))
                self.assertIn(query["error"], [["invalid_request"], ["unsupported_response_type"]])
        for changes in [{"redirect_uri": REDIRECT + "&x=1"}, {"redirect_uri": "https://evil.example/"},
                        {"client_id": "0" * 24}]:
            with self.subTest(changes=changes):
                status, text, headers = self.fetch(self.authorize_url(self.app, **challenge, **changes))
                self.assertEqual((status, json.loads(text)["error"]), (400, "invalid_request"))
                self.assertIsNone(headers["Location"])

    def test_a_form_from_another_site_is_refused(self):
        url = self.authorize_url(self.shop)
        page = Page(self.fetch(url)[1])
        filled = {**page.fields, "username": ANN, "password": ANN_PASSWORD}
        for headers in [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]:
            self.assertEqual(self.fetch("/auth/oauth2/authorize", filled, headers)[0], 403, headers)
        self.assertEqual(self.fetch("/auth/oauth2/authorize", {**filled, "request": "x"})[0], 400)
        self.assertEqual(self.fetch("/auth/oauth2/authorize", {**filled, "password": "wrong"})[0], 200)

    def test_a_revoked_token_is_refused(self):
        tokens = self.sign_in()
        for token, status in [(tokens["access_token"], 200), (tokens["refresh_token"], 200), ("unknown", 200)]:
            self.assertEqual(self.fetch("/auth/oauth2/revoke", {"token": token, **self.as_shop()})[0], status)
        self.assertFalse(self.opens(tokens["access_token"]))
        self.token(400, grant_type="refresh_token", refresh_token=tokens["refresh_token"], **self.as_shop())

    def test_guesses_lock_the_account(self):
        victim = "victim@example.com"
        self.daemon.ctl("user", "add", victim, "--password-stdin", input="the right one")
        for _ in range(5):
            self.assertEqual(self.sign_in(victim, "guess", 400)["error"], "invalid_grant")
        self.sign_in(victim, "the right one", 429)
        self.sign_in()

    def test_a_new_or_deprecated_password_revokes_the_users_tokens(self):
        email = "tom@example.com"
        user = self.daemon.ctl("user", "add", email, "--password-stdin", input="first pass phrase")
        access = self.sign_in(email, "first pass phrase")["access_token"]
        self.daemon.ctl("user", "passwd", email, "--password-stdin", input="second pass phrase")
        self.assertEqual(self.status_with({"Authorization": f"Bearer {access}"}), 401)
        self.sign_in(email, "first pass phrase", 400)
        tokens = self.sign_in(email, "second pass phrase")
        status, answer, _ = self.daemon.request("POST", "/v2.0/users/deprecatepassword", {"userId": user["_id"]},
                                                {"X-API-Key": self.key})
        self.assertEqual((status, answer), (200, {"deprecated": True}))
        self.assertEqual(self.status_with({"Authorization": f"Bearer {tokens['access_token']}"}), 401)
        self.token(400, grant_type="refresh_token", refresh_token=tokens["refresh_token"], **self.as_shop())
        self.sign_in(email, "second pass phrase", 400)

    def test_only_genuine_contact_center_tokens_are_accepted(self):
        claims = {"sub": self.user["_id"], "aud": ["conversed"], "exp": int(time.time()) + 600}

        def status(token):
            return self.status_with({"x-contactcenter-authorization": f"Bearer {token}"})

        self.assertEqual(status(self.center.sign(claims)), 200)
        self.assertEqual(status(self.center.sign({**claims, "sub": ANN})), 200)
        for token in [self.stranger.sign(claims), self.stranger.sign(claims, kid="center"),
                      self.center.sign({**claims, "exp": int(time.time()) - 600}),
                      self.center.sign({**claims, "nbf": int(time.time()) + 600}),
                      self.center.sign({**claims, "aud": "other"}), self.center.sign({**claims, "sub": "nobody"}),
                      self.center.sign(claims, alg="none"), "x"]:
            self.assertEqual(status(token), 401)

    def test_clients_are_listed_and_removed(self):
        made = self.daemon.ctl("oauth-client", "add", "--name", "Short-lived", "--password-grant")
        listed = {each["clientId"]: each for each in self.daemon.ctl("oauth-client", "list")["items"]}
        self.assertEqual(listed[self.shop["clientId"]]["redirectUris"], [REDIRECT, "https://shop.example/other"])
        self.assertNotIn("clientSecret", listed[made["clientId"]])
        self.daemon.ctl("oauth-client", "remove", made["clientId"])
        self.assertNotIn(made["clientId"], str(self.daemon.ctl("oauth-client", "list")))
        self.token(401, grant_type="password", username=ANN, password=ANN_PASSWORD, client_id=made["clientId"],
                   client_secret=made["clientSecret"])
        self.assertIn(ANN, [each["email"] for each in self.daemon.ctl("user", "list")["items"]])

    def test_a_user_of_another_organisation_can_not_sign_in(self):
        self.daemon.ctl("organisation", "add", "Other", "--admin", "out@other.example", "--password-stdin",
                        input="out's pass phrase")
        self.sign_in("out@other.example", "out's pass phrase", 400)

    def test_an_error_never_repeats_the_key_of_the_query(self):
        for path in ["/v2.0/endpoint/inject", "/nothing", "/v2.0/users/deprecatepassword"]:
            status, answer, _ = self.daemon.request("POST", f"{path}?api_key=cvk_secret-in-the-query", {})
            self.assertGreaterEqual(status, 400)
            self.assertNotIn("secret-in-the-query", json.dumps(answer))

    @classmethod
    def tearDownClass(cls):
        # After all tests, neither the log nor any other file contains a secret in clear.
        cls.daemon.terminate()
        folder = pathlib.Path(cls.folder.name)
        secret_texts = [PASSWORD, ANN_PASSWORD, cls.shop["clientSecret"], cls.key, "secret-in-the-query", "cva_", "cvr_"]
        for path in filter(pathlib.Path.is_file, folder.rglob("*")):
            content = path.read_bytes()
            for text in secret_texts:
                assert text.encode() not in content, f"{text[:4]}... is in {path.name}"
        super().tearDownClass()


if __name__ == "__main__":
    unittest.main()
