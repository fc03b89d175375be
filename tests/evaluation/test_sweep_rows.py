import json

import pytest
from tampl.evaluation.sweeps import FailedValue, Sweep, SweptRun, sweep_rows

from tampl.evaluation import Score
from tampl.files import strict_json


def run(value, seed, *, validation=0.2, score=None, latent_std=1.0, collapsed=False):
    return SweptRun(value, seed, validation, score, latent_std, collapsed)


RUNS = [
    run(0.1, 1, validation=0.2, score=Score(0.3, 0.01)),
    run(0.1, 2, validation=0.4, score=Score(0.5, 0.03), latent_std=2.0),
    run([8, 8], 1, validation=None, score=Score(0.1, None), collapsed=True),
]


def test_rows_by_hand():
    first, second, third = sweep_rows([0.1, [8, 8], 7], RUNS)
    assert first.validation.mean == pytest.approx(0.3)
    assert first.validation.std == pytest.approx(0.02**0.5)
    assert first.mmd.mean == pytest.approx(0.02)
    assert first.latent_std.values == (1.0, 2.0)
    assert (second.validation, second.mmd, second.collapsed) == (None, None, (1,))
    assert (third.seeds, third.rmse) == ((), None)


def test_without_test_there_are_no_scores():
    (row,) = sweep_rows([1], [run(1, 5)])
    assert row.rmse is None
    assert row.validation.values == (0.2,)


def test_json_and_what_is_waiting():
    rows = sweep_rows([0.1, [8, 8], 7], RUNS)
    failed = (FailedValue([8, 8], 2, "it diverged"),)
    sweep = Sweep("jld", "model.hidden", (1, 2), test=True, rows=rows, failed=failed)
    assert sweep.waiting == 2
    plain = json.loads(strict_json(sweep.as_dict()))
    assert plain["rows"][1]["value"] == [8, 8]
    assert plain["failed"][0]["reason"] == "it diverged"
    assert plain["waiting"] == 2
