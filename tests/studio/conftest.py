"""A tiny trained run with its store, and what the studio makes of them."""

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("fastapi", reason="the studio needs fastapi: pip install 'tampl[studio]'")
pytest.importorskip("uvicorn", reason="the studio needs uvicorn: pip install 'tampl[studio]'")
pytest.importorskip("httpx2", reason="the client of these tests needs httpx2: pip install httpx2")

from starlette.testclient import TestClient

from tampl.lab.pipeline import simulate, train
from tampl.lab.recipes import read_recipe
from tampl.studio import open_exhibit
from tampl.studio.app import make_app

TINY = Path(__file__).parents[1] / "tiny.toml"
HOME = "http://127.0.0.1:8420"


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A store and two runs in the folder of a comparison."""
    folder = tmp_path_factory.mktemp("studio")
    recipe = read_recipe(TINY)
    simulate(recipe, folder / "data")
    for method in ("tampl", "tampl+"):
        train(recipe, folder / "data", folder / "runs" / f"{method}-0", method=method)
    return SimpleNamespace(folder=folder, data=folder / "data", runs=folder / "runs")


@pytest.fixture(scope="session")
def exhibit(trained):
    runs = [trained.runs / "tampl+-0", trained.runs / "tampl-0"]
    return open_exhibit(runs, data=trained.data, device="cpu")


@pytest.fixture(scope="session")
def client(exhibit):
    """A client of the studio on the loopback address."""
    with TestClient(make_app(exhibit), base_url=HOME) as found:
        yield found
