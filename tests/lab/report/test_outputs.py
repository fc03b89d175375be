"""What the page of a run says when its latent scale collapsed."""

import numpy as np
import pytest

from tampl.evaluation import Case, Cases, Curve, Score
from tampl.lab.report.outputs import describe_collapses, write_report
from tampl.lab.runs import RunRecord

LATENT = {"std_mean": 0.02, "std_min": 0.01, "effective_rank": 1.0, "transition_ratio": 1.5}


def make_run(*collapsed, latent=LATENT, method="jld"):
    curve = Curve(np.zeros((3, 1)), None)
    cases = [Case(n, "K=1", np.zeros((4, 4), np.uint8), curve, {method: curve}) for n in (0, 1)]
    return RunRecord(
        method=method,
        kind="lattice",
        recipe={
            "system": {"name": "sirs"},
            "data": {"seed": 0},
            "model": {},
            "training": {"seed": 42},
            "methods": {},
        },
        scores={method: Score(0.5, 0.1), "floor": Score(0.1, 0.01)},
        cases=Cases(np.arange(3.0), ("S",), tuple(cases), (0, 1)),
        data="identity",
        history=[
            {
                "epoch": epoch,
                "losses": {"joint": {"total": 1.0}},
                "latent": latent,
                "validation": 0.5,
                "seconds": {"joint": 1.0},
                **({} if flag is None else {"collapsed": flag}),
            }
            for epoch, flag in enumerate(collapsed, start=1)
        ],
        provenance={"tampl": "test"},
    )


def test_the_line():
    assert describe_collapses([make_run(True, False, True, True)]) == [
        "JLD, seed 42: the latent scale collapsed in epoch 3 (standard deviation 0.02, transition "
        "loss 1.5 times the latent variance)"
    ]


@pytest.mark.parametrize("flags", [(False,), (True, False), (None, None), (True, None), ()])
def test_runs_that_end_well_or_do_not_tell_have_no_line(flags):
    assert describe_collapses([make_run(*flags)]) == []


def test_what_is_not_known_is_left_out():
    assert describe_collapses([make_run(True, latent={"std_mean": 0.5})]) == [
        "JLD, seed 42: the latent scale collapsed in epoch 1 (standard deviation 0.5)"
    ]
    assert describe_collapses([make_run(True, latent=None)]) == [
        "JLD, seed 42: the latent scale collapsed in epoch 1"
    ]


def test_the_page_of_a_run_says_so(tmp_path):
    (line,) = describe_collapses([make_run(False, True)])
    assert f"<li>{line}</li>" in write_report({"jld": make_run(False, True)}, tmp_path).read_text()
    assert "collapsed in" not in write_report({"jld": make_run(False)}, tmp_path).read_text()
