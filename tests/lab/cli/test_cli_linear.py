"""`tampl linear`: what it prints, writes and refuses."""

import json

import numpy as np
import pytest

from command import call
from tampl.theory.certificates.convergence import certify_rounds
from tampl.theory.experiments.cases import make_case1, make_case2, make_local
from tampl.theory.linear import LinearSystem, Realisation, Weights
from tampl.theory.updates import Round

KEYS = ["l_cur", "l_tr", "s_min", "s_min_lowest", "rollout"]


def save(path, case, model=None, **more):
    pick = lambda M: M[0] if M.ndim == 3 else M
    arrays = {name: pick(getattr(case.system, name)) for name in ("A", "C", "Sigma")}
    if model is not None:
        arrays |= {name: pick(getattr(model, name)) for name in "BDK"}
    np.savez(path, **arrays | more)
    return path


@pytest.fixture
def exact(tmp_path):
    case = make_local([0])
    return save(tmp_path / "exact.npz", case, case.exact)


# What is printed


def test_case1_is_the_promised_json():
    outcome = call("linear", "case1", "--json")
    assert outcome.code == 0, outcome
    assert list(outcome.json) == ["joint", "recon_joint", "tampl"]
    assert all(list(values) == KEYS for values in outcome.json.values())
    assert outcome.json["joint"]["rollout"] == pytest.approx(0.105, abs=0.001)
    assert outcome.json["tampl"]["rollout"] < 1e-15
    assert len(outcome.out.splitlines()) == 1


def test_case2_has_the_margins():
    outcome = call("linear", "case2", "--seeds", "0-1", "--updates", 50, "--json")
    assert list(outcome.json) == ["joint", "recon_joint", "tampl", "certificate"]
    certificate = outcome.json["certificate"]
    assert certificate["tau_0"] == pytest.approx(0.45)
    assert certificate["reference_margin"] == pytest.approx(2.24)
    assert len(certificate["endpoint_margins"]) == 2


def test_local_has_an_entry_per_seed():
    seeds = call("linear", "local", "--seeds", "3,5-6", "--rounds", 100, "--json").json["seeds"]
    assert [entry["seed"] for entry in seeds] == [3, 5, 6]
    assert set(seeds[0]) >= {"margin", "mu_max", "radius", "factor"}


def test_collapse_and_selection():
    quick = ("--seeds", "0-1", "--updates", 50, "--json")
    assert list(call("linear", "collapse", *quick).json["joint"]) == ["norm", "scale", "error"]
    outcome = call("linear", "selection", "--variance-n", 3, "--json")
    assert outcome.json["threshold"] == pytest.approx(0.5)
    never = call("linear", "selection", "--variance-n", 1, "--json")
    assert never.json["threshold"] is None


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("case1", "--updates", 20), ["Joint with reconstruction", "rollout error"]),
        (("case2", "--updates", 20), ["TAMPL", "tau_0 0.45", "margin 2.24", "holds"]),
        (("local", "--rounds", 40, "--seeds", "0-1"), ["mu_max", "radius", "40 rounds"]),
        (("collapse", "--updates", 20, "--seeds", "0-2"), ["error at step 12", "medians"]),
        (("selection",), ["above lambda_rec = 0.3333"]),
        (("selection", "--variance-n", 0.5), ["no weight of reconstruction"]),
    ],
)
def test_people_get_text(command, words):
    outcome = call("linear", *command)
    assert outcome.code == 0, outcome
    assert all(word in outcome.out for word in words), outcome.out


@pytest.mark.parametrize(
    "command",
    [
        ("case1", "--updates", 20),
        ("case2", "--updates", 20),
        ("local", "--rounds", 40, "--seeds", "0-1"),
        ("collapse", "--updates", 20, "--seeds", "0-2"),
        ("selection",),
    ],
)
def test_out_holds_figure_and_record(command, tmp_path):
    outcome = call("linear", *command, "--out", tmp_path / "new", "--json")
    assert outcome.code == 0, outcome
    name = command[0]
    written = {path.name for path in (tmp_path / "new").iterdir()}
    assert written == {f"{name}.json", f"{name}.png", f"{name}.pdf"}
    record = json.loads((tmp_path / "new" / f"{name}.json").read_text())
    assert record["result"] == outcome.json
    assert "commit" in record["provenance"]


# Certificates


def test_certify_gives_verdicts_in_words(exact):
    outcome = call("linear", "certify", exact)
    assert outcome.code == 0, outcome
    assert "local convergence: converges" in outcome.out
    assert "with the common size 0.001 converge" in outcome.out


def test_certify_as_json(exact, tmp_path):
    outcome = call("linear", "certify", exact, "--mu", 0.002, "--json", "--out", tmp_path / "o")
    found = outcome.json["local_convergence"]
    assert found["verdict"] == "converges"
    assert found["numbers"]["mu"] == 0.002
    assert [path.name for path in (tmp_path / "o").iterdir()] == ["certify.json"]


def test_certify_any_round(exact):
    schedule = ("--encoder-steps", 3, "--transition-steps", 2)
    sizes = ("--mu", 0.002, "--mu-encoder", 0.001)
    found = call("linear", "certify", exact, *schedule, *sizes, "--json").json
    with np.load(exact) as file:
        system = LinearSystem(*(file[name] for name in ("A", "C", "Sigma")))
        model = Realisation(*(file[name] for name in "BDK"))
    steps = Round(encoder_steps=3, transition_steps=2, mu_encoder=0.001, mu_transition=0.002)
    expected = certify_rounds(system, model, Weights(), steps)
    assert found["tampl_rounds"]["numbers"]["radius"] == pytest.approx(expected.radius)
    assert found["local_convergence"]["verdict"] == "does not apply"
    assert found["local_convergence"]["numbers"]["mu_max"] > 0
    alone = call("linear", "certify", exact, "--mu-transition", 0.002, "--json").json
    assert alone["local_convergence"]["verdict"] == "does not apply"
    both = ("--mu-encoder", 0.002, "--mu-transition", 0.002, "--json")
    common = call("linear", "certify", exact, *both).json["local_convergence"]
    assert common["numbers"]["mu"] == 0.002


def test_certify_the_wrong_subspace(tmp_path):
    case = make_case2([0])
    path = save(tmp_path / "wrong.npz", case, case.wrong)
    found = call("linear", "certify", path, "--json").json
    assert found["incorrect_attractor"]["numbers"]["margin"] == pytest.approx(2.24)
    assert found["detached_instability"]["verdict"] == "unstable"
    assert found["spectral_ordering"]["verdict"] == "ordered"


def test_certify_a_dimension(tmp_path):
    case = make_local([0])
    found = call("linear", "certify", save(tmp_path / "a.npz", case, d=3), "--json").json
    assert found["exactness"]["verdict"] == "exact"
    found = call("linear", "certify", save(tmp_path / "b.npz", case, d=2), "--json").json
    assert found["realisability"]["verdict"] == "none exists"
    assert "latent_dim" not in found["realisability"]["words"]


# Wrong input


def test_bad_systems(tmp_path, exact):
    with np.load(exact) as file:
        good = dict(file)
    for change, words in (
        ({"A": np.ones((7, 6))}, ["`A`", "square", "7", "6"]),
        ({"Sigma": np.diag([1.0, 1, 1, 1, 1, 1, -0.5])}, ["`Sigma`", "definite", "-0.5"]),
        ({"B": np.eye(8, 7), "K": np.eye(8), "D": np.ones((1, 8))}, ["`B`", "8", "7"]),
        ({"D": good["D"] + 1}, ["`r`", "exact", "partial"]),
    ):
        path = tmp_path / "bad.npz"
        np.savez(path, **good | change)
        call("linear", "certify", path).refused(*words)


def test_dimension_above_n(tmp_path):
    path = save(tmp_path / "large.npz", make_local([0]), d=9)
    call("linear", "certify", path).refused("`d` = 9", "n = 7")


def test_an_inexact_point_can_be_asked_for(tmp_path):
    case = make_case1([0])
    path = save(tmp_path / "start.npz", case, case.start)
    call("linear", "certify", path).refused("exact realisation", "0.5", "partial")
    found = call("linear", "certify", path, "--partial", "--json").json
    assert found["joint_scale"]["verdict"] == "shrinks"


def test_files_that_cannot_be_read(tmp_path):
    call("linear", "certify", tmp_path / "no.npz").refused("no.npz")
    (tmp_path / "text.npz").write_text("nonsense")
    call("linear", "certify", tmp_path / "text.npz").refused("no archive")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("case1", "--seeds", "x"), ["seeds", "'x'"]),
        (("case1", "--seeds", "4-0"), ["seeds", "empty"]),
        (("case1", "--updates", 0), ["updates"]),
        (("collapse", "--step", -1), ["step"]),
        (("selection", "--variance-u", -1), ["`variance_u` = -1"]),
        (("selection", "--variance-n", 0), ["`variance_n` = 0"]),
        (("selection", "--c", 0), ["`c` = 0", "not zero"]),
        (("selection", "--lambda-cur", -1), ["lambda-cur"]),
        (("selection", "--lambda-cur", "nan"), ["cur"]),
        (("nonsense",), ["nonsense"]),
        ((), ["command"]),
    ],
)
def test_bad_options(command, words):
    call("linear", *command).refused(*words)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--mu", 0), "`mu` = 0"),
        (("--mu-encoder", -1), "`mu_encoder` = -1"),
        (("--mu-transition", 0), "`mu_transition` = 0"),
        (("--encoder-steps", 0), "encoder_steps"),
        (("--lambda-tr", -1), "lambda-tr"),
        (("--lambda-cur", 0), "cur"),
    ],
)
def test_bad_training(exact, options, word):
    call("linear", "certify", exact, *options).refused(word)


def test_help_lists_the_commands():
    text = call("linear", "--help").out
    for command in ("case1", "case2", "local", "collapse", "selection", "certify"):
        assert command in text
