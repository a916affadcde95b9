"""Shared by the tests of OAuth clients: a daemon with one user, a confidential client and a public client."""

from case import ECHO, DaemonCase

REDIRECT = "http://127.0.0.1:9/callback"
ANN, ANN_PASSWORD = "ann@example.com", "ann's own pass phrase"


class OauthCase(DaemonCase):
    """`shop` is a confidential client with the password grant. `app` is a public client."""

    bundle = ECHO

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.url = f"http://127.0.0.1:{cls.daemon.ports['api']}"
        cls.daemon.ctl("user", "add", ANN, "--roles", "conversationAdmin", "--project", "Tests",
                       "--password-stdin", input=ANN_PASSWORD)
        cls.shop = cls.daemon.ctl("oauth-client", "add", "--name", "Shop", "--redirect-uri", REDIRECT,
                                  "--password-grant")
        cls.app = cls.daemon.ctl("oauth-client", "add", "--name", "App", "--public", "--redirect-uri", REDIRECT)
