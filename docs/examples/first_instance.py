#!/usr/bin/env python3
"""The whole path through Berth's API with nothing but Python's standard library.

    berth up &
    python3 docs/examples/first_instance.py http://127.0.0.1:8080

Signs up, pays 25.00 with a test card, launches an A100 slice, waits until it
runs, stops it and prints what it cost. Works against test payments only.
"""
import http.cookiejar
import json
import secrets
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

BASE = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
SKU = sys.argv[2] if len(sys.argv) > 2 else "a100-80gb.1g.10gb"
browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
token = None


def api(method, path, body=None, key=None):
    """One call; an error's detail and next step end the script."""
    request = urllib.request.Request(BASE + "/api/v1" + path, method=method)
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    if token:
        request.add_header("Authorization", "Bearer " + token)
    if key:
        request.add_header("Idempotency-Key", key)
    try:
        with browser.open(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        problem = json.load(error)
        sys.exit(f"{problem['code']}: {problem['detail']} {problem.get('next', '')}")


def form(url, **fields):
    """Send a plain form, as a browser without scripts would."""
    return browser.open(url, urllib.parse.urlencode(fields).encode())


def wait(what, ready, seconds=60):
    """Ask until ready, at most for some seconds."""
    for _ in range(seconds * 5):
        value = ready()
        if value:
            return value
        time.sleep(0.2)
    sys.exit(f"{what}: not within {seconds} s")


def dollars(money):
    return f"{money['micros'] / 1_000_000:.6f} {money['currency']}"  # shown only; sums stay integers


form(BASE + "/signup", name="Script", email=f"script-{secrets.token_hex(4)}@example.org", password=secrets.token_urlsafe(16))
token = api("POST", "/tokens", {"name": "first_instance.py"})["token"]
print("signed up as", api("GET", "/me")["user"]["email"])

topup = api("POST", "/wallet/topups", {"amount": {"micros": 25_000_000, "currency": "USD"}}, key=secrets.token_hex(8))
form(topup["checkout_url"], card="4242424242424242").close()
wallet = wait("payment", lambda: (w := api("GET", "/wallet"))["balance"]["micros"] > 0 and w)
print("wallet:", dollars(wallet["available"]))

offer = api("GET", "/offers?sku=" + SKU)["items"][0]
print(f"{SKU}: {dollars(offer['price_per_hour'])} per hour, {offer['available']} free")

made = api("POST", "/instances", {"sku": SKU, "billing_mode": "on_demand", "image": "host system", "disk_gib": 10}, key=secrets.token_hex(8))
here = "/instances/" + made["id"]
running = wait("running", lambda: (i := api("GET", here))["state"] == "running" and i)
print("running:", running["name"], "on", running["node"], running["slices"])

wait("five charged seconds", lambda: api("GET", here)["seconds"] >= 5)
api("POST", here + "/stop")
stopped = wait("stopped", lambda: (i := api("GET", here))["state"] == "stopped" and i)
expected = stopped["price_per_hour"]["micros"] * stopped["seconds"] // 3600
print(f"stopped after {stopped['seconds']} s, charged {dollars(stopped['charged'])}, expected {expected} micro-units")
assert stopped["charged"]["micros"] == expected

for span in api("GET", "/usage?instance=" + made["id"])["items"]:
    print("span", span["start"], "to", span["end"], span["seconds"], "s")
for row in api("GET", "/ledger")["items"]:
    print("ledger", row["at"], row["kind"], dollars(row["amount"]), "→", dollars(row["balance_after"]))
api("POST", here + "/terminate")
