"""How a studio bears many visitors: clients that repaint at once, on loopback.

Each client changes its lattice, asks for the forecast of every model as the page does while
someone paints, waits for the answers, and paints again after the pause of a hand. The server is a
process of its own, whose memory is read while it serves. The script ends by itself.

    python benchmarks/studio_load.py runs/demo --json > results/studio_load.json
"""

import argparse
import asyncio
import base64
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

from tampl.lab.provenance import provenance
from tampl.threads import available_cores

PAUSE_S = 0.1
"""Between an answer and the next stroke; the page asks at most this often while one paints."""


def main() -> None:
    arguments = parse()
    server, port = start(arguments.models)
    try:
        result = asyncio.run(load(port, server.pid, arguments))
    finally:
        server.terminate()
        server.wait(timeout=20)
    result["provenance"] = provenance()
    print(json.dumps(result, indent=1) if arguments.json else describe(result))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path, help="runs, models or comparisons")
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def start(models: list[Path]) -> tuple[subprocess.Popen, int]:
    """The server's process and its port, once it serves."""
    command = [sys.executable, "-c", "from tampl.lab.cli import main; main()", "studio"]
    options = [*map(str, models), "--port", "0", "--no-browser"]
    server = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        if "http://" in line:
            return server, int(line.split("http://")[1].split(":")[1].split("/")[0])
    raise SystemExit(f"the server ended with code {server.wait()}")


async def load(port: int, pid: int, arguments: argparse.Namespace) -> dict[str, object]:
    exhibit = json.loads((await ask(port, "/api/exhibit"))[1])
    await asyncio.sleep(3)  # kernels are compiled and first forecasts drawn
    answers, memory, since = [], [], time.perf_counter()
    until = since + arguments.seconds
    clients = [paint(port, exhibit, seed, until, answers) for seed in range(arguments.clients)]
    watching = asyncio.create_task(watch(pid, since, memory))
    await asyncio.gather(*clients)
    watching.cancel()
    seconds = sorted(answer for answer, status in answers if status == 200)
    # Once all clients have asked a few times, nothing more should be kept.
    settled = [size for at, size in memory if at > arguments.seconds / 3]
    return {
        "clients": arguments.clients,
        "seconds": arguments.seconds,
        "pause_s": PAUSE_S,
        "cores": available_cores(),
        "models": [model["name"] for model in exhibit["models"]],
        "microstates": exhibit["microstate_in_words"],
        "forecasts": len(answers),
        "errors": sum(status != 200 for _, status in answers),
        "forecasts_per_s": len(answers) / arguments.seconds,
        "median_s": median(seconds),
        "p95_s": seconds[int(0.95 * len(seconds))],
        "slowest_s": seconds[-1],
        "memory_mb": {"start": memory[0][1], "after_a_third": settled[0], "end": settled[-1]},
    }


async def paint(
    port: int, exhibit: dict, seed: int, until: float, answers: list[tuple[float, int]]
) -> None:
    generator = np.random.default_rng(seed)
    start = exhibit["start"]["state"]
    state = np.frombuffer(base64.b64decode(start["data"]), start["dtype"]).copy()
    states = exhibit["microstate"]["states"]
    while time.perf_counter() < until:
        stroke = generator.integers(len(state), size=12)
        state[stroke] = generator.integers(states)
        body = {"state": {**start, "data": base64.b64encode(state.tobytes()).decode()}}
        for model in exhibit["models"]:
            began = time.perf_counter()
            try:
                path = f"/api/models/{model['number']}/forecast"
                status, _ = await asyncio.wait_for(ask(port, path, body), 60)
            except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
                status = 0
            answers.append((time.perf_counter() - began, status))
        await asyncio.sleep(PAUSE_S)


async def ask(port: int, path: str, body: dict | None = None) -> tuple[int, bytes]:
    """One request on a connection of its own: the status and the body of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        "Connection: close\r\n\r\n"
    )
    try:
        writer.write(head.encode() + data)
        answer = await reader.read()
    finally:
        writer.close()
    head, _, content = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), content


async def watch(pid: int, since: float, memory: list[tuple[float, float]]) -> None:
    """Notes the resident memory of the server in MB, once a second."""
    while True:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        memory.append((time.perf_counter() - since, pages * 4096 / 1e6))
        await asyncio.sleep(1)


def describe(result: dict) -> str:
    return (
        f"{result['clients']} clients, {result['forecasts']} forecasts in "
        f"{result['seconds']:g} s, {result['errors']} errors; median {result['median_s']:.3f} s, "
        f"95 % within {result['p95_s']:.3f} s; memory {result['memory_mb']}"
    )


if __name__ == "__main__":
    main()
