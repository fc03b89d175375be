"""The guard: who is let in."""

import asyncio

import pytest
from starlette.testclient import TestClient

from tampl.studio.guard import COOKIE, Gate, Guard, is_loopback

HOME = "http://127.0.0.1:8420"


async def behind(scope, receive, send):
    """Answers with the length of the body that arrived."""
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


def visit(gate=None, home=HOME):
    return TestClient(Guard(behind, gate or Gate()), base_url=home, follow_redirects=False)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:9"}, 200),
        ({"host": "[::1]:8420"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example:8420"}, 403),
        ({"host": ""}, 403),
        ({"origin": HOME}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 200),
    ],
)
def test_only_the_page_and_programs_are_let_in(headers, status):
    assert visit().post("/", headers=headers, content=b"abc").status_code == status


def test_all_answers_forbid_the_browser_whatever_is_not_needed():
    for path, headers in (("/", {}), ("/", {"host": "evil.example"})):
        found = visit().get(path, headers=headers).headers
        policy = found["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert found["x-content-type-options"] == "nosniff"


def test_a_token_opens_the_page_once_and_stays_as_a_cookie():
    gate = Gate(hosts={"10.0.0.7"}, token="secret")
    browser = visit(gate, "http://10.0.0.7:8420")
    assert browser.get("/").status_code == 401
    assert browser.get("/?token=wrong").status_code == 401
    assert browser.get("/api?token=secret").status_code == 401
    entered = browser.get("/?token=secret")
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    assert "HttpOnly" in entered.headers["set-cookie"]
    assert "SameSite=Strict" in entered.headers["set-cookie"]
    assert browser.cookies[COOKIE] == "secret"
    assert browser.get("/").status_code == 200
    program = visit(gate, "http://10.0.0.7:8420")
    assert program.get("/", headers={"authorization": "Bearer secret"}).status_code == 200
    assert program.get("/", headers={"authorization": "Bearer secre"}).status_code == 401
    assert program.get("/", headers={"authorization": "Bearer é".encode()}).status_code == 401


def test_a_gate_for_all_addresses_takes_digits_and_no_foreign_names():
    gate = Gate(hosts={"lab"}, digits=True)
    for host, status in (("192.168.1.5:8420", 200), ("lab", 200), ("evil.example", 403)):
        assert visit(gate).get("/", headers={"host": host}).status_code == status


def test_bodies_have_a_limit_whether_or_not_they_say_how_long_they_are():
    client = visit(Gate(largest=10))
    assert client.post("/", content=b"x" * 10).text == "10"
    assert client.post("/", content=b"x" * 11).status_code == 413
    assert client.post("/", content=iter([b"x" * 6, b"x" * 6])).status_code == 413
    assert client.post("/", content=iter([b"x" * 5, b"x" * 5])).text == "10"


def test_a_body_that_does_not_come_is_not_waited_for():
    sent = []

    async def receive():
        await asyncio.sleep(60)

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": "/", "query_string": b"",
        "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1),
    }  # fmt: skip
    asyncio.run(Guard(behind, Gate(body_s=0.01))(scope, receive, send))
    assert sent[0]["status"] == 408


def test_one_address_has_a_rate_and_others_are_not_held_up():
    app = Guard(behind, Gate(per_second=1e-6, burst=3))
    client = TestClient(app, base_url=HOME)
    assert [client.get("/").status_code for _ in range(4)] == [200, 200, 200, 429]
    assert client.get("/").headers["retry-after"] == "1"
    other = TestClient(app, base_url=HOME, client=("10.0.0.2", 1))
    assert other.get("/").status_code == 200


def test_loopback():
    assert is_loopback("127.0.0.1") and is_loopback("localhost") and is_loopback("::1")
    assert not is_loopback("0.0.0.0") and not is_loopback("example.org")
