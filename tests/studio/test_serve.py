"""The server: where it listens, what it needs, and that it drops what nobody waits for."""

import json
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from serving import served

from command import call
from tampl.errors import InputError
from tampl.studio import app as studio_app
from tampl.studio import live, serve
from tampl.studio.app import make_app


def send(port, path, body):
    """Sends a request on a socket of its own, which can be closed at any time."""
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
    return connection


def until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def start(client):
    return client.get("/api/exhibit").json()["start"]["state"]


def test_a_simulation_ends_when_its_page_goes_away(exhibit, start, monkeypatch):
    begun = []

    def endless(system, state, *, members, seed):
        for n in range(100_000):
            begun.append(n)
            time.sleep(0.01)
            yield next(live.simulate_live(system, state, members=1, seed=0))

    monkeypatch.setattr(studio_app, "simulate_live", endless)
    with served(make_app(exhibit)) as port:
        connection = send(port, "/api/simulation", {"state": start})
        connection.recv(1000)
        until(lambda: len(begun) > 3)
        connection.close()
        time.sleep(0.3)
        after = len(begun)
        time.sleep(0.3)
        assert len(begun) <= after + 1


def test_a_forecast_that_nobody_waits_for_is_not_begun(exhibit, start, monkeypatch):
    gate, asked = threading.Event(), []

    def slow(shown, what):
        asked.append(what)
        gate.wait(120)
        return {}

    app = make_app(exhibit)
    with served(app) as port:
        workers = app.state.workers
        until(lambda: not workers.simulations._work_queue.qsize())
        monkeypatch.setattr(studio_app.answers, "forecast", slow)
        busy = workers.forecasts._max_workers
        connections = [send(port, "/api/models/0/forecast", {"state": start}) for _ in range(busy)]
        until(lambda: len(asked) == busy)
        late = [send(port, "/api/models/0/forecast", {"state": start}) for _ in range(5)]
        until(lambda: workers.forecasts._work_queue.qsize() == 5)
        for connection in late:
            connection.close()
        until(lambda: workers._waiting == busy)
        gate.set()
        time.sleep(0.2)
        assert len(asked) == busy
        for connection in connections:
            connection.close()


def test_only_the_loopback_address_is_without_a_token():
    gate, address = serve._make_gate("127.0.0.1", 8420)
    assert gate.token is None and address == "http://127.0.0.1:8420/"
    for host in ("0.0.0.0", "10.0.0.7", "::"):
        gate, address = serve._make_gate(host, 8420)
        assert len(gate.token) >= 32
        assert address.endswith(f":8420/?token={gate.token}")
        assert gate.digits == (host != "10.0.0.7")
    assert serve._make_gate("::1", 1)[1] == "http://[::1]:1/"


def test_a_port_that_is_taken_is_said_in_one_line(trained):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match="nothing can listen there"):
            serve._listen("127.0.0.1", port)
        call("studio", trained.folder, "--port", port, "--no-browser").refused("--port")
    call("studio", trained.folder / "nothing", "--port", 0, "--no-browser").refused("does not")


def test_the_command_serves_a_page_until_it_is_interrupted(trained):
    command = [sys.executable, "-c", "from tampl.lab.cli import main; main()", "studio"]
    options = [str(trained.runs / "tampl-0"), "--port", "0", "--no-browser"]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline()
        address = line.split()[5]
        with urllib.request.urlopen(f"{address}api/exhibit", timeout=20) as answer:
            assert json.load(answer)["system"] == "sirs"
        with pytest.raises(urllib.error.HTTPError, match="403"):
            request = urllib.request.Request(address, headers={"Host": "evil.example"})
            urllib.request.urlopen(request, timeout=20)
    finally:
        process.terminate()
        _, rest = process.communicate(timeout=20)
    assert "Traceback" not in rest


def test_the_command_line_does_not_load_the_studio():
    script = (
        "import sys\nfrom tampl.lab.cli import main\nsys.argv = ['tampl', 'studio', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\nprint(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert loaded.isdisjoint({"fastapi", "uvicorn", "starlette", "tampl.studio"})


def test_without_its_packages_the_studio_says_what_to_install(trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "tampl.studio.serve", None)
    call("studio", trained.folder).refused("pip install 'tampl[studio]'")
