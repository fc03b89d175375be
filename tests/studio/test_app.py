"""The routes: what they answer is what Python gives, and wrong input is one line."""

import base64
import json
from io import BytesIO

import numpy as np
import pytest
from starlette.testclient import TestClient

from tampl.evaluation.metrics import rmse
from tampl.microstates import Vector
from tampl.studio.app import make_app
from tampl.studio.exhibits import Exhibit, HeldOut, ShownModel

HOME = "http://127.0.0.1:8420"


def pack(state):
    data = base64.b64encode(np.ascontiguousarray(state).tobytes()).decode()
    return {"shape": list(state.shape), "dtype": state.dtype.name, "data": data}


def unpack(packed):
    return np.frombuffer(base64.b64decode(packed["data"]), packed["dtype"]).reshape(
        packed["shape"]
    )


@pytest.fixture(scope="module")
def state(exhibit):
    return exhibit.system.pattern(2, np.random.default_rng(0))


def refused(answer, status, *words):
    assert answer.status_code == status, answer.text
    (line,) = answer.json().values()
    assert "\n" not in line and all(word in line for word in words), line


def test_the_exhibit_says_what_there_is(client, exhibit):
    found = client.get("/api/exhibit").json()
    assert [model["name"] for model in found["models"]] == [m.name for m in exhibit.models]
    assert [o["symbol"] for o in found["observables"]] == ["S", "I", "R"]
    assert found["frames"] == 6 and found["held_out"] == 3 and found["simulates"]
    start = unpack(found["start"]["state"])
    assert found["start"]["y"] == exhibit.system.observe(start).tolist()


def test_a_forecast_is_that_of_python(client, exhibit, state):
    body = {"state": pack(state), "members": 16, "seed": 3, "samples": True}
    for number, shown in enumerate(exhibit.models):
        found = client.post(f"/api/models/{number}/forecast", json=body).json()
        y0 = exhibit.system.observe(state)
        ahead = shown.model.forecast(state, y0, members=16, seed=3, progress=False)
        assert np.array_equal(found["samples"], ahead.samples[0])
        assert np.array_equal(found["mean"], ahead.mean[0])
        assert np.array_equal(found["quantiles"], ahead.quantiles(found["levels"])[:, 0])
        assert found["warnings"] == list(ahead.warnings)
        assert found["times"] == ahead.times.tolist() and found["observed"]
        again = client.post(f"/api/models/{number}/forecast", json=body).json()
        assert {**again, "seconds": 0} == {**found, "seconds": 0}


def test_a_known_macrostate_is_where_the_forecast_starts(client, state):
    body = {"state": pack(state), "y0": [0.5, 0.25, 0.25]}
    found = client.post("/api/models/0/forecast", json=body).json()
    assert np.allclose(found["mean"][0], body["y0"])
    body["y0"] = [0.5]
    refused(client.post("/api/models/0/forecast", json=body), 422, "`y0` has 1 numbers")


def test_latent_trajectories_start_at_the_encoded_state(client, exhibit, state):
    body = {"state": pack(state), "members": 8}
    found = np.array(client.post("/api/models/0/latents", json=body).json()["paths"])
    assert found.shape == (8, 6, 2)
    model = exhibit.models[0].model
    training = client.get("/api/models/0/training").json()
    # The plane holds the two axes along which the landmarks spread the most.
    cloud = np.array(training["cloud"])
    landmarks = model.envelope.landmarks.numpy()
    assert np.allclose(cloud, landmarks[:, [-1, -2]])
    assert (found[:, 0] == found[0, 0]).all()
    assert len(training["epochs"]) == len(training["latent_std"]) == len(training["losses"]["map"])
    assert training["health"]


def test_the_closures_are_those_of_the_system(client, exhibit, state):
    found = client.post("/api/closures", json={"state": pack(state)}).json()
    assert [closure["name"] for closure in found] == ["mean field", "pair"]
    for closure, run in zip(found, exhibit.system.closures().values(), strict=True):
        assert np.allclose(closure["macrostates"], run(state[None])[0])


def test_a_simulation_comes_line_by_line(client, exhibit, state):
    body = {"state": pack(state), "members": 5, "seed": 2}
    lines = client.post("/api/simulation", json=body).text.splitlines()
    first, *pieces, last = map(json.loads, lines)
    assert (first["kind"], first["frames"], first["members"]) == ("begin", 6, 5)
    assert last == {"kind": "end", "complete": True}
    watched = {}
    for piece in pieces:
        if piece["microstates"]:
            stack = unpack(piece["microstates"])
            watched |= dict(enumerate(stack, piece["microstates"]["first"]))
            y = exhibit.system.observe(stack)
            assert np.allclose(y, piece["macrostates"][0])
    assert sorted(watched) == list(range(6))
    assert np.array_equal(watched[0], state)
    assert max(p["member"] + len(p["macrostates"]) for p in pieces) == 5


def test_draws_and_test_states(client, exhibit):
    body = {"family": "clusters", "values": {"clusters": 1}, "seed": 4, "count": 3}
    drawn = client.post("/api/states/draw", json=body).json()["states"]
    later = client.post("/api/states/draw", json={**body, "seed": 5, "count": 1}).json()["states"]
    assert len(drawn) == 3 and drawn[1] == later[0]
    held = client.get("/api/states/test/1").json()
    assert np.array_equal(unpack(held["state"]), exhibit.held_out.x[1])
    future = client.get("/api/states/test/1/future").json()
    assert np.array_equal(future["macrostates"], exhibit.held_out.y[1])
    assert future["microstates"] is None
    refused(client.get("/api/states/test/3"), 404, "no test state 3")
    refused(client.post("/api/states/draw", json={**body, "family": "../x"}), 422, "`family`")


def test_files_are_checked_as_the_kind_of_microstate_checks_them(client, state):
    def upload(array):
        file = BytesIO()
        np.save(file, array)
        return client.post("/api/states/npy", content=file.getvalue())

    for array in (state, state[None], state.astype(float)):
        assert np.array_equal(unpack(upload(array).json()["state"]), state)
    refused(upload(state[:3]), 422, "the file has shape (3, 8)")
    refused(upload(state + 7), 422, "states are 0 to 2")
    refused(upload(np.stack([state, state])), 422, "give one microstate")
    refused(client.post("/api/states/npy", content=b"hello"), 422, "numpy.save")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"members": 100_000}, "members"),
        ({"horizon": 0}, "horizon"),
        ({"horizon": 5000}, "at most 24 frames"),
        ({"seed": -1}, "seed"),
        ({"state": {"shape": [8, 8], "dtype": "object", "data": ""}}, "dtype"),
        ({"state": {"shape": [2**20, 2**20, 2**20], "dtype": "uint8", "data": ""}}, "0 bytes"),
        ({"path": "/etc/passwd"}, "path"),
    ],
)
def test_what_is_too_large_or_unknown_is_refused(client, state, change, words):
    body = {"state": pack(state), **change}
    refused(client.post("/api/models/0/forecast", json=body), 422, words)


def test_nothing_that_is_sent_is_a_path(client):
    for name in ("..%2F..%2Fpyproject.toml", "../app.py", "%2Fetc%2Fpasswd", "none.js"):
        assert client.get(f"/page/{name}").status_code == 404
    for number in ("7", "-1", "x", "0%2F.."):
        assert client.get(f"/api/models/{number}/training").status_code in (404, 422)


def test_the_page_is_whole_and_asks_no_other_host(client):
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    names = ["studio.css", "icon.svg"] + [
        part.split('"')[0] for part in page.text.split("/page/")[1:] if ".js" in part[:20]
    ]
    assert "main.js" in names and "truth.js" in names
    for name in names:
        found = client.get(f"/page/{name}")
        assert found.status_code == 200
        known = {"if-none-match": found.headers["etag"]}
        assert client.get(f"/page/{name}", headers=known).status_code == 304
        outside = found.text.replace("http://www.w3.org/", "")
        assert "http://" not in outside and "https://" not in outside
    assert "style=" not in page.text and "<script>" not in page.text


def test_own_data_shows_held_out_trajectories(make_model, lattices):
    model = make_model()
    own = model.description.model_copy(update={"system": "own data", "parameters": {}})
    model.description = own
    paths = np.stack([lattices] * 4, axis=1)
    y = np.random.default_rng(0).random((5, 2, 4, 3))
    held = HeldOut(lattices, y, np.array(["a"] * 5), paths)
    app = make_app(Exhibit([ShownModel("own", model)], held_out=held))
    with TestClient(app, base_url=HOME) as client:
        found = client.get("/api/exhibit").json()
        assert not found["simulates"] and found["families"] == [] and found["closures"] == []
        assert found["start"]["label"] == "a"
        future = client.get("/api/states/test/2/future").json()
        assert np.array_equal(unpack(future["microstates"]), paths[2])
        body = {"state": pack(lattices[0])}
        refused(client.post("/api/simulation", json=body), 422, "has no simulator")
        refused(client.post("/api/models/0/latents", json=body), 422, "no envelope")
        assert client.post("/api/closures", json=body).json() == []
        assert client.post("/api/models/0/forecast", json=body).json()["observed"] is False
        assert client.get("/api/models/0/training").json()["cloud"] is None


def test_a_kind_that_nothing_is_known_of_starts_with_an_upload(make_model):
    model = make_model()
    model.description = model.description.model_copy(
        update={"system": "own data", "parameters": {}, "microstate": Vector(size=4)}
    )
    app = make_app(Exhibit([ShownModel("own", model)]))
    with TestClient(app, base_url=HOME) as client:
        assert client.get("/api/exhibit").json()["start"] is None


def test_the_score_of_an_answer_is_that_of_evaluation(client, exhibit, state):
    # The page works out the RMSE of means from these numbers; they are those of `evaluation`.
    body = {"state": pack(state), "members": 64}
    model = client.get("/api/exhibit").json()["models"][0]
    ahead = client.post("/api/models/0/forecast", json=body).json()
    y = exhibit.system.simulate_from(state, members=4, seed=1).macrostates
    scale = np.array(model["scale"])
    ours = (np.array(ahead["mean"])[1:] - y.mean(axis=0)[1:]) / scale
    normalization = exhibit.models[0].model.normalization
    standard = [normalization.standardize(v)[None, 1:] for v in (ahead["mean"], y.mean(axis=0))]
    assert np.sqrt(np.mean(ours**2)) == pytest.approx(rmse(*standard))
