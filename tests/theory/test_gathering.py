"""All certificates of a point at once, from matrices and from files."""

import numpy as np
import pytest

from tampl.errors import InputError
from tampl.theory.certificates.gathering import (
    certify,
    certify_dimension,
    certify_file,
    read_system,
)
from tampl.theory.experiments.cases import make_case1, make_case2, make_local
from tampl.theory.linear import LinearSystem, Realisation, Weights
from tampl.theory.updates import Round

OPTIONS = {"weights": Weights(), "steps": Round(mu_encoder=0.001, mu_transition=0.001)}
ANYWHERE = ["realisability", "exactness", "reconstruction", "transition fit", "scale anchoring"]
INCORRECT = ["incorrect attractor", "Schur test", "detached instability", "spectral ordering"]
EXACT = ["local convergence", "TAMPL rounds"]


def one(case, model):
    pick = lambda M: M[0] if M.ndim == 3 else M
    system = LinearSystem(*(pick(getattr(case.system, name)) for name in ("A", "C", "Sigma")))
    return system, Realisation(*(pick(getattr(model, name)) for name in "BDK"))


@pytest.fixture(scope="module")
def exact():
    case = make_local([0])
    return one(case, case.exact)


@pytest.fixture(scope="module")
def wrong():
    case = make_case2([0])
    return one(case, case.wrong)


@pytest.fixture(scope="module")
def neither():
    case = make_case1([0])
    return one(case, case.start)


def verdicts(findings):
    return {found.name: found.verdict for found in findings}


def test_an_exact_realisation(exact):
    found = verdicts(certify(*exact, **OPTIONS))
    assert list(found) == [*ANYWHERE, "joint scale", *INCORRECT, *EXACT]
    assert found["realisability"] == "exists"
    assert found["exactness"] == "exact"
    assert found["joint scale"] == "not forced"
    assert {found[name] for name in INCORRECT} == {"does not apply"}
    assert {found[name] for name in EXACT} == {"converges"}


def test_a_closed_model_without_the_task(wrong):
    findings = {found.name: found for found in certify(*wrong, **OPTIONS)}
    found = verdicts(findings.values())
    assert found["exactness"] == "inexact"
    assert found["joint scale"] == "not forced"
    assert found["incorrect attractor"] == found["Schur test"] == "attractor"
    assert found["detached instability"] == "unstable"
    assert found["spectral ordering"] == "ordered"
    assert findings["spectral ordering"].numbers["margin"] == pytest.approx(0.45)
    assert "from 0.65 on the omitted" in findings["spectral ordering"].words
    assert {found[name] for name in EXACT} == {"does not apply"}
    numbers = findings["incorrect attractor"].numbers
    assert numbers["tau_0"] == pytest.approx(0.45)
    assert numbers["margin"] == pytest.approx(2.24)


def test_any_other_point_is_refused_unless_asked_for(neither):
    with pytest.raises(InputError, match=r"`r` must be an exact realisation.*0\.5.*`partial`"):
        certify(*neither, **OPTIONS)
    found = verdicts(certify(*neither, **OPTIONS, partial=True))
    assert found["joint scale"] == "shrinks"
    assert {found[name] for name in (*INCORRECT, *EXACT)} == {"does not apply"}


def test_words_are_sentences(exact, wrong):
    for found in (*certify(*exact, **OPTIONS), *certify(*wrong, **OPTIONS)):
        assert found.words[0].isupper() and found.words.endswith("."), found
        assert ".." not in found.words


@pytest.mark.parametrize(
    "schedule",
    [
        {"encoder_steps": 3},
        {"transition_steps": 2},
        {"mu_transition": 0.002},
        {"encoder_steps": 2, "transition_steps": 3, "mu_encoder": 0.0005},
    ],
)
def test_the_theorem_does_not_apply_to_another_schedule(exact, schedule):
    steps = Round(**{"mu_encoder": 0.001, "mu_transition": 0.001} | schedule)
    findings = {f.name: f for f in certify(*exact, weights=Weights(), steps=steps)}
    found = findings["local convergence"]
    assert found.verdict == "does not apply"
    assert "one step per block" in found.words
    assert found.numbers["mu_max"] > 0.00275
    assert not {"mu", "error_bound", "coarse_bound"} & set(found.numbers)
    assert findings["TAMPL rounds"].verdict == "converges"


def test_another_schedule_of_a_point_without_a_certified_step(exact):
    system, model = exact
    small = model.change(0.1 * np.eye(3))
    steps = Round(encoder_steps=2, mu_encoder=0.001, mu_transition=0.001)
    found = {f.name: f for f in certify(system, small, weights=Weights(), steps=steps)}
    assert found["local convergence"].numbers["mu_max"] == 0
    assert "certifies none" in found["local convergence"].words


def test_instability_that_does_not_apply_says_why(wrong):
    system, model = wrong
    skew = LinearSystem(system.A, system.C, 2.0 * system.Sigma)
    found = {f.name: f for f in certify(skew, model, **OPTIONS)}
    assert found["incorrect attractor"].verdict == "attractor"
    assert found["detached instability"].verdict == "does not apply"
    assert "Sigma = I" in found["detached instability"].words
    assert found["spectral ordering"].verdict == "does not apply"


def test_a_dimension_is_realised_or_ruled_out(exact):
    system, _ = exact
    assert verdicts(certify_dimension(system, 3, **OPTIONS))["exactness"] == "exact"
    findings = certify_dimension(system, 2, **OPTIONS)
    assert verdicts(findings)["realisability"] == "none exists"
    assert "dimension 3" in findings[0].words
    assert "latent_dim" not in findings[0].words
    assert findings[0].words.count("xact realisation") == 1
    for d in (0, 8):
        with pytest.raises(InputError, match=rf"`d` = {d}"):
            certify_dimension(system, d, **OPTIONS)


def test_complex_pairs_rule_a_dimension_out():
    A = np.zeros((3, 3))
    A[0, 0], A[1:, 1:] = 0.5, [[0.3, 0.4], [-0.4, 0.3]]
    system = LinearSystem(A, np.eye(1, 3), np.eye(3))
    found = certify_dimension(system, 2, **OPTIONS)[0]
    assert found.verdict == "none exists"
    assert found.words.startswith("No exact realisation of dimension 2 exists, since the other 2")
    assert "latent_dim" not in found.words


def test_a_dimension_alone_is_certified_for_one_scaling(exact):
    for found in certify_dimension(exact[0], 3, **OPTIONS):
        assert ("another scaling" in found.words) == (found.name in EXACT)
    assert not any("another scaling" in found.words for found in certify(*exact, **OPTIONS))


def test_a_batch_is_refused(exact):
    system, model = exact
    batch = Realisation(*(getattr(model, name)[None] for name in "BDK"))
    with pytest.raises(InputError, match="`B` must be one matrix"):
        certify(system, batch, **OPTIONS)


@pytest.mark.parametrize(
    ("C", "Sigma", "verdict", "words"),
    [
        (np.diag([1, 0.5, 0.1]), np.eye(3), "no room", "Without reconstruction already"),
        (np.eye(1, 3), np.diag([1, 2, 3]), "harmful", "From lambda_rec = 1 on"),
        (np.eye(2, 3), np.diag([1, 2, 3]), "harmful", "Just above lambda_rec = 0.5"),
        (np.eye(1, 3), np.diag([3, 2, 1]), "harmless", "up to lambda_rec = 1e+06 loses"),
        (np.diag([1, 1e-4, 0])[:2], np.eye(3), "harmless", "up to lambda_rec = "),
    ],
)
def test_reconstruction(C, Sigma, verdict, words):
    system = LinearSystem(np.diag([0.5, 0.4, 0.3]), C, Sigma)
    found = {f.name: f for f in certify_dimension(system, 2, **OPTIONS)}["reconstruction"]
    assert found.verdict == verdict
    assert words in found.words


def test_nothing_to_lose():
    system = LinearSystem(np.diag([0.5, 0.4]), np.zeros((1, 2)), np.eye(2))
    found = verdicts(certify_dimension(system, 1, **OPTIONS))
    assert found["reconstruction"] == "does not apply"


# Files


def arrays(system, model=None):
    found = {name: getattr(system, name) for name in ("A", "C", "Sigma")}
    return found | ({name: getattr(model, name) for name in "BDK"} if model else {})


@pytest.fixture
def save(tmp_path):
    def write(**content):
        np.savez(tmp_path / "system.npz", **content)
        return tmp_path / "system.npz"

    return write


def test_a_file_says_what_its_matrices_say(exact, save):
    path = save(**arrays(*exact))
    assert certify_file(path, **OPTIONS) == certify(*exact, **OPTIONS)
    system, model = read_system(path)
    np.testing.assert_array_equal(system.A, exact[0].A)
    np.testing.assert_array_equal(model.K, exact[1].K)


def test_a_file_with_a_dimension(exact, save):
    for d in (3, np.array([3]), 3.0):
        path = save(**arrays(exact[0]), d=d)
        assert read_system(path)[1] == 3
        assert certify_file(path, **OPTIONS) == certify_dimension(exact[0], 3, **OPTIONS)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"Sigma": None}, "`Sigma`"),
        ({"A": None, "C": None}, "`A`, `C`"),
        ({"D": None}, "only"),
        ({"B": None, "D": None, "K": None}, "the dimension d"),
        ({"d": 4}, "`d` = 4 must be 3"),
        ({"surprise": np.eye(2)}, "surprise"),
        ({"A": np.ones((7, 6))}, "`A` must be square"),
        ({"Sigma": -np.eye(7)}, "positive definite; its smallest eigenvalue is -1"),
        ({"A": np.array([["a"]])}, "real numbers"),
        ({"A": 1j * np.eye(7)}, "real numbers"),
    ],
)
def test_bad_files(exact, save, change, words):
    content = arrays(*exact) | change
    path = save(**{name: array for name, array in content.items() if array is not None})
    with pytest.raises(InputError, match=words):
        read_system(path)


@pytest.mark.parametrize("d", [np.nan, 2.5, [1, 2]])
def test_bad_dimensions(exact, save, d):
    with pytest.raises(InputError, match="`d` must be one whole number"):
        read_system(save(**arrays(exact[0]), d=d))


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04 broken"])
def test_files_that_are_no_archives(tmp_path, content):
    path = tmp_path / "system.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="no archive of arrays"):
        read_system(path)


def test_a_single_array_is_no_system(tmp_path):
    np.save(tmp_path / "system.npy", np.eye(3))
    with pytest.raises(InputError, match="no archive of arrays"):
        read_system(tmp_path / "system.npy")


def test_pickles_are_not_opened(save):
    with pytest.raises(InputError, match="no archive of arrays"):
        read_system(save(A=np.array([{}], dtype=object)))
