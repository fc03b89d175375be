"""What a page says about its data: only what they have."""

from dataclasses import replace

import numpy as np
import pytest

from tampl.description import Description, Observable
from tampl.evaluation import Case, Cases, Curve
from tampl.lab.report.introduction import (
    caption_cases,
    caption_comparison,
    caption_scales,
    describe_observables,
    introduce,
    list_colours,
    read_description,
    start_alike,
)
from tampl.methods import METHODS
from tampl.microstates import Lattice, Particles, Vector
from tampl.systems import SIRS


def describe(microstate, **changes):
    observables = (Observable(name="height", symbol="h", unit="nm"),)
    settings = {"system": "own data", "parameters": {}, "interval": 0.5, "frames": 3}
    return Description(microstate=microstate, observables=observables, **(settings | changes))


def make_cases(starts=(0.0, 0.0), ends=(0.0, 1.0), *, spread=True, method="tampl", closures=()):
    cases = []
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        mean = np.linspace(start, end, 4)[:, None]
        curve = Curve(mean, np.ones_like(mean) if spread else None)
        predictions = {name: Curve(mean, None) for name in closures}
        cases.append(Case(index, "", np.zeros(3), curve, {method: curve} | predictions))
    return Cases(np.arange(4.0), ("h",), tuple(cases), (0, 1))


def test_two_sentences_say_what_is_forecast_and_by_whom():
    system, methods = introduce(SIRS().description, ["tampl", "jld"])
    assert system.startswith("The system sirs is an epidemic on a periodic lattice")
    assert "S (susceptible), I (infected) and R (recovered)" in system
    assert "TAMPL: encoder and transition trained in turn" in methods
    assert "JLD: encoder, transition and readout trained jointly." in methods


def test_one_s_own_data_are_described_by_what_is_known():
    first, second = introduce(describe(Vector(size=3), time_unit="ps"), ["mine", "tampl seed 3"])
    assert first.startswith("The system is own data; microstates are vectors")
    assert first.endswith("the observable is h (height, in nm), at 3 times 0.5 ps apart.")
    assert "mine; tampl seed 3: encoder and" in second
    assert len(introduce(None, ["tampl"])) == 1


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_explained(method):
    assert ": " in introduce(None, [method])[0].partition("off. ")[2]


def test_observables_and_times_have_their_units():
    assert describe_observables(describe(Vector(size=3), time_unit="ps")) == {
        "h": "height, in nm",
        "time": "in ps",
        "time between frames": "0.5 ps",
    }
    assert describe_observables(describe(Vector(size=3)))["time"] == "without a unit"
    assert describe_observables(None) == {}


def test_the_colours_of_a_lattice_have_names():
    assert list(list_colours(SIRS().description)) == ["susceptible", "infected", "recovered"]
    lattice = list_colours(describe(Lattice(height=4, width=4, states=8)))
    assert list(lattice)[:3] == ["state 0, state 6", "state 1, state 7", "state 2"]
    assert len(lattice) == len(set(lattice.values())) == 6
    particles = list_colours(describe(Particles(count=4, dim=2, types=2, box=3.0)))
    assert list(particles) == ["type 1", "type 2"]
    assert list_colours(describe(Vector(size=3))) == list_colours(None) == {}


def test_a_description_of_an_unknown_kind_is_left_out():
    plain = SIRS().description.model_dump(mode="json")
    assert read_description(plain) == SIRS().description
    assert read_description({**plain, "microstate": {"kind": "somebody's"}}) is None
    assert read_description({}) is None


def test_twins_are_shown_where_they_part():
    assert start_alike(make_cases()) is True
    assert start_alike(make_cases(starts=(0.0, 0.1))) is False
    assert start_alike(make_cases(starts=(0.0, 1.0), ends=(0.0, 1.0))) is None
    assert start_alike(replace(make_cases(), twins=())) is None
    assert start_alike(make_cases(ends=(0.0, 0.0))) is True


def test_captions_say_what_the_figures_show():
    captions = caption_cases(make_cases(closures=["pair"]), "tampl")
    assert "closures are deterministic" in captions["predictions"]
    assert "initial macrostates are the same" in captions["twins"]
    near = caption_cases(make_cases(starts=(0.0, 0.1)), "tampl")
    assert "nearest of all pairs" in near["twins"] and "nearly the same" in near["twins"]
    assert "closures" not in near["predictions"]
    apart = make_cases(starts=(0.0, 1.0), spread=False)
    assert caption_cases(apart, "tampl").keys() == {"predictions"}
    single = caption_cases(apart, "tampl")["predictions"]
    assert "single trajectory" in single and "ands are" not in single


def test_the_caption_of_a_comparison():
    several = {"tampl": make_cases(), "vamp": make_cases(method="vamp")}
    text = caption_comparison(several, 0, seed=7, snapshots=6)
    assert "many simulations" in text and "no band" not in text and "Training seed 7." in text
    single = {"vamp": make_cases(method="vamp", spread=False)}
    text = caption_comparison(single, 0, seed=7, snapshots=1)
    assert "On top the initial microstate." in text and "one simulation" in text
    assert "band" not in text


def test_the_caption_of_latent_scales_knows_the_seeds():
    assert "seed 3 strong, the others faint" in caption_scales([3, 4])
    assert "faint" not in caption_scales([3])
