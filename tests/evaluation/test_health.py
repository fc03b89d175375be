import pytest

from tampl.evaluation.health import LatentCollapse, best_validation, find_collapse, latent_std


def log(*flags, validation=(None,)):
    """One record for each flag."""
    errors = [*validation, *[None] * len(flags)]
    return [
        {
            "epoch": epoch,
            "latent": {"std_mean": epoch / 10, "transition_ratio": float(epoch)},
            "validation": errors[epoch - 1],
            "collapsed": flag,
        }
        for epoch, flag in enumerate(flags, start=1)
    ]


@pytest.mark.parametrize(
    ("flags", "epoch"),
    [
        ((False, False), None),
        ((True, False), None),
        ((False, True), 2),
        ((True, False, True, True), 3),
        ((True, True, True), 1),
    ],
)
def test_a_collapse_is_the_last_unbroken_series(flags, epoch):
    wanted = None if epoch is None else LatentCollapse(epoch, epoch / 10, float(epoch))
    assert find_collapse(log(*flags)) == wanted


def test_logs_without_the_keys_are_read():
    assert find_collapse([]) is None
    assert find_collapse([{"epoch": 1}]) is None
    assert find_collapse([{"epoch": 1, "collapsed": True, "latent": None}]) == LatentCollapse(
        1, None, None
    )
    assert latent_std([{"epoch": 1, "validation": 0.1}]) is None


def test_the_latent_scale_is_that_of_the_best_epoch():
    records = log(*[False] * 4, validation=[None, 0.3, 0.2, 0.25])
    assert best_validation(records) == 0.2
    assert latent_std(records) == 0.3


def test_of_equal_errors_the_first_is_the_best_model():
    assert latent_std(log(False, False, validation=[0.2, 0.2])) == 0.1


def test_without_a_validation_there_is_no_best_epoch():
    assert best_validation(log(False, False)) is None
    assert latent_std(log(False, False)) is None
