#!/usr/bin/env python3
"""Makes the pictures of the console in docs/pictures: a session, the receipt of an inject, and a Flow.

The shop of the demo runs: a customer asks for an order, the order desk is slow, and an inject waits meanwhile.
"""

import argparse
import pathlib
import sys
import tempfile
import threading
import urllib.parse

import demo
from chromium import Browser

PICTURES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "pictures"


def converse(shop):
    shop.say("Hello")
    shop.inject({"event": "packed", "orderId": "A-1017"}, "packed")
    lookup = threading.Thread(target=shop.say, args=("Where is my order?",))
    lookup.start()
    shop.desk.waiting.wait(0.5)
    shop.inject({"event": "scanned", "place": "the warehouse"}, "scan")
    lookup.join()
    shop.inject({"event": "delivered", "orderId": "A-1017"}, "delivered")
    shop.wait_idle()


def take(browser, shop, view, name):
    who = ":".join(map(urllib.parse.quote, (demo.EMAIL, demo.PASSWORD)))
    browser.open("about:blank")
    browser.open(f"http://{who}@127.0.0.1:{shop.daemon.ports['api']}/management/console#{view}")
    browser.wait_until("document.body && document.body.dataset.shown")
    browser.picture(PICTURES / name, whole=False)
    print(PICTURES / name)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--bin", type=pathlib.Path, required=True, help="the folder of conversed and conversectl")
    binaries = arguments.parse_args().bin.resolve()
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="conversed-pictures-") as folder, Browser() as browser:
        shop = demo.Shop(binaries, pathlib.Path(folder), demo.Screen())
        try:
            shop.set_up()
            converse(shop)
            browser.look(1280, 800, "light")
            take(browser, shop, "/".join(["sessions", shop.url_token, demo.USER, demo.SESSION]), "session.png")
            take(browser, shop, "receipt/scan", "receipt.png")
            _, flows, _ = shop.daemon.request("GET", "/management/flows", basic=True)
            take(browser, shop, "flow/" + flows["items"][0]["_id"], "flow.png")
        finally:
            shop.close()


if __name__ == "__main__":
    sys.exit(main())
