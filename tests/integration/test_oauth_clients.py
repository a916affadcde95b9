"""requests-oauthlib, an independent OAuth client, completes both grants and refreshes tokens."""

import base64
import hashlib
import os
import re
import secrets
import sys
import unittest
import urllib.parse

try:
    import requests
    from oauthlib.oauth2 import InvalidGrantError, LegacyApplicationClient
    from requests_oauthlib import OAuth2Session
except ImportError as missing:
    print(f"skipped: {missing}; `./dev test` installs it", file=sys.stderr)
    sys.exit(77)

from oauth_case import ANN, ANN_PASSWORD, REDIRECT, OauthCase

os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"  # the daemon leaves TLS to a proxy


class Clients(OauthCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.token_url = cls.url + "/new/auth/oauth2/token"

    def check(self, session, **client):
        """Checks that the session's token opens the API, and that a second use of a refresh token fails."""
        message = {"URLToken": self.tokens["echo"], "userId": "u", "sessionId": "s", "text": "t"}
        for _ in range(2):
            answer = session.post(self.url + "/v2.0/endpoint/inject", json=message)
            self.assertEqual(answer.status_code, 200, answer.text)
            used = session.token["refresh_token"]
            session.refresh_token(self.token_url, **client)
        with self.assertRaises(InvalidGrantError):
            session.refresh_token(self.token_url, refresh_token=used, **client)

    def sign_in(self, url):
        """Fills in the sign-in page, as a browser's user does. Returns the redirect."""
        browser = requests.Session()
        page = browser.get(url)
        self.assertEqual(page.status_code, 200, page.text)
        request = re.search(r'name="request" value="([^"]+)"', page.text).group(1)
        answer = browser.post(urllib.parse.urljoin(url, "authorize"), allow_redirects=False, data={
            "request": request, "username": ANN, "password": ANN_PASSWORD})
        self.assertEqual(answer.status_code, 303, answer.text)
        return answer.headers["Location"]

    def test_password_grant(self):
        client = {"client_id": self.shop["clientId"], "client_secret": self.shop["clientSecret"]}
        session = OAuth2Session(client=LegacyApplicationClient(client_id=self.shop["clientId"]))
        session.fetch_token(self.token_url, username=ANN, password=ANN_PASSWORD, **client)
        self.check(session, **client)

    def test_code_grant_of_a_confidential_client(self):
        session = OAuth2Session(self.shop["clientId"], redirect_uri=REDIRECT)
        location = self.sign_in(session.authorization_url(self.url + "/auth/oauth2/authorize")[0])
        session.fetch_token(self.token_url, authorization_response=location, client_secret=self.shop["clientSecret"])
        self.check(session, client_id=self.shop["clientId"], client_secret=self.shop["clientSecret"])

    def test_code_grant_of_a_public_client(self):
        verifier = secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        session = OAuth2Session(self.app["clientId"], redirect_uri=REDIRECT)
        location = self.sign_in(session.authorization_url(
            self.url + "/auth/oauth2/authorize", code_challenge=challenge, code_challenge_method="S256")[0])
        session.fetch_token(self.token_url, authorization_response=location, include_client_id=True,
                            code_verifier=verifier)
        self.check(session, client_id=self.app["clientId"])


if __name__ == "__main__":
    unittest.main()
