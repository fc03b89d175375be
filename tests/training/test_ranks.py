"""Several ranks make the steps of one, and go on where another number of them has stopped."""

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import multiprocessing, nn

from command import call
from tampl.data import Store, write_miniature
from tampl.data.dataset import Dataset
from tampl.errors import InputError
from tampl.files import read_json
from tampl.lab.pipeline import joined, simulate, train
from tampl.lab.recipes import read_recipe
from tampl.methods import METHODS, Jld, JldSig, Tampl
from tampl.methods.tampl import MapFit, Refit, TamplPlus
from tampl.models import ModelSpec
from tampl.seeding import ambient_seed
from tampl.systems import SIRS
from tampl.training import Ranks, Trainer, TrainingSpec, join
from tampl.training.frames import BLOCKS_TOGETHER, Frames, select
from tampl.training.partitions import Partitions
from workbench import SPEC

TINY = Path(__file__).parents[1] / "tiny.toml"
STEPS = 50
PLUS = TamplPlus(
    refit=Refit(steps=10, batch_size=16, hidden=(16,)),
    map=MapFit(steps=10, batch_size=16, hidden=(16,)),
)
COMPARED = {
    "tampl": (METHODS["tampl"], {}),
    "jld-vic": (METHODS["jld-vic"], {}),
    "vamp": (METHODS["vamp"], {}),
    "jld-sig": (JldSig(), {"window": 3, "fraction": 0.7, "epochs": 3}),
    "jld-recon": (METHODS["jld-recon"], {"symmetries": ["shift", "flip"], "epochs": 2}),
    "tampl+": (PLUS, {"fraction": 0.5, "epochs": 2}),
    "holes": (METHODS["tampl"], {"lag": 2, "epochs": 3}),
    "lags": (Tampl(lags=(1, 3)), {"window": 3, "fraction": 0.7, "epochs": 3}),
}
"""Methods with further settings of the training, by a name of the comparison."""


def make_data(folder):
    """Seven trajectories, so that partitions have two or one."""
    if not (folder / "manifest.json").exists():
        write_miniature(SIRS(size=8, frames=9, clusters=(1, 2)), folder)
    data = Store.open(folder).dataset("train")
    runs = np.arange(7) % len(data)
    return data.select(runs)


def punch(data):
    """The data with frames that are missing."""
    present = np.ones(data.y.shape[:2], dtype=bool)
    present[0, 6:] = present[3, 4] = present[5, 2] = False
    y = np.where(present[..., None], data.y, np.nan)
    return Dataset.described(data.description, data.x, y, data.labels, present)


def make_trainer(data, method, ranks, spec=SPEC, **settings):
    training = TrainingSpec.model_validate(
        {"epochs": 25, "batch_size": 16, "seed": 5, "partitions": 4} | settings
    )
    frames = Frames.load(
        data,
        data.statistics,
        lag=training.lag,
        dtype=torch.float64,
        partitions=training.partitions,
        ranks=ranks,
    )
    with ambient_seed(1, "weights"):
        modules = method.modules(spec, data.description).double()
    turns = method.turns(training)
    return Trainer(turns, modules, frames=frames, training=training, ranks=ranks)


def record(trainer, steps):
    """Trains, and returns the loss of each step, the weights and the scales."""
    losses, scales = [], []
    for name, stepper in trainer.steppers.items():

        def step(*arguments, name=name, make=stepper.step):
            values = make(*arguments)
            losses.append((name, trainer.ranks.mean(values["total"]).item()))
            return values

        stepper.step = step
    while trainer.epoch < len(trainer.schedule) and len(losses) < steps:
        scales.append(trainer.run_epoch().latent)
    return losses, trainer.modules.state_dict(), scales


def compare_all(data, ranks):
    found = {}
    for name, (method, settings) in COMPARED.items():
        used = punch(data) if name == "holes" else data
        found[name] = record(make_trainer(used, method, ranks, **settings), STEPS)
    return found


ALONE = Ranks()


# Without communication: what each rank sees


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_data(tmp_path_factory.mktemp("ranks") / "store")


def test_partitions_cover_the_trajectories():
    for size in (1, 2, 4):
        held = [Partitions.cut(7, 4, Ranks(rank, size)) for rank in range(size)]
        rows = [row for part in held for row in range(7)[part.rows]]
        assert rows == list(range(7))
        assert [p for part in held for p in part] == [0, 1, 2, 3]
        assert {part.cuts for part in held} == {(0, 1, 3, 5, 7)}
    assert Partitions.cut(7, 4, ALONE).smallest == 1
    assert Partitions.cut(7, 1, ALONE).address(0) == ()


@pytest.mark.parametrize(
    ("settings", "ranks", "words"),
    [
        ({"partitions": 3}, Ranks(0, 2), "2 ranks"),
        ({"partitions": 8}, ALONE, "7 trajectories"),
        ({"partitions": 4, "batch_size": 3}, ALONE, "a window of each partition"),
        ({"partitions": 4, "batch_size": 12, "window": 5}, ALONE, "a window of each partition"),
    ],
)
def test_what_cannot_be_divided_is_refused(data, settings, ranks, words):
    with pytest.raises(InputError, match=words) as caught:
        make_trainer(data, Tampl(), ranks, **settings)
    assert "\n" not in str(caught.value) and "`training.partitions` is" in str(caught.value)


def test_frames_of_another_division_are_refused(data, bench):
    with pytest.raises(InputError, match="partitions"):
        bench.trainer(Tampl(), bench.training(partitions=2))


def test_one_partition_is_the_recipe_of_before():
    assert "partitions" not in TrainingSpec(epochs=1).model_dump()
    assert TrainingSpec(epochs=1, partitions=2).model_dump()["partitions"] == 2


SETTINGS = {
    "plain": {},
    "windows": {"window": 3},
    "fraction": {"fraction": 0.6, "window": 3},
    "lag": {"lag": 2},
    "blocks": {"order": "blocks"},
    "symmetries": {"symmetries": ["shift", "transpose"]},
}


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_ranks_see_their_part_of_each_batch(data, monkeypatch, settings, holes):
    """The batches of one rank are those of two, one after the other: frames, noise and order."""
    monkeypatch.setattr("tampl.training.frames.BLOCK_BYTES", 3 * 64)
    data = punch(data) if holes else data
    trainers = [
        make_trainer(data, JldSig(), ranks, **settings)
        for ranks in (ALONE, Ranks(0, 2), Ranks(1, 2))
    ]
    whole, *parts = ([trainer.first_batch(s) for s in trainer.schedule[0]] for trainer in trainers)
    for batch, *others in zip(whole, *parts, strict=True):
        for name, value in batch.fields.items():
            assert torch.equal(value, torch.cat([other[name] for other in others])), name
        for name in ("s", "epsilon"):
            assert torch.equal(batch.noise[name], torch.cat([o.noise[name] for o in others]))
        directions = [each.noise["directions"] for each in (batch, *others)]
        assert all(torch.equal(directions[0], each) for each in directions)


def test_every_batch_has_as_many_windows_of_each_partition(data):
    trainer = make_trainer(punch(data), Tampl(), ALONE, epochs=1)
    (stage, _), frames = trainer.schedule[0], trainer.frames
    rows = [frames.partitions.here(partition) for partition in frames.partitions]
    starts = [batch for batch, _, _ in trainer._batches(stage)]
    for batch in starts:
        counts = [((batch // 9 >= r.start) & (batch // 9 < r.stop)).sum() for r in rows]
        assert len(set(map(int, counts))) == 1
    assert len(torch.cat(starts).unique()) == 4 * frames.count_windows(2, 0)
    assert len(starts) == trainer.steppers[stage.name].total_steps


def test_blocks_of_a_partition_begin_with_it(data):
    trainer = make_trainer(data, Tampl(), ALONE, order="blocks")
    for partition in range(4):
        (found,) = select(trainer.frames, trainer.training, 0, partition=partition)
        assert found.first == 9 * trainer.frames.partitions.cuts[partition]
        assert found.together == BLOCKS_TOGETHER // 4


def test_a_part_is_read_from_disk_alone(data, tmp_path):
    """What a rank keeps of data on disk, and a rank that streams, are the same frames."""
    make_data(tmp_path / "store")
    store, ranks = Store.open(tmp_path / "store"), Ranks(1, 2)
    lazy = store.dataset("train", memory=0, verify=False)
    held = store.dataset("train", memory=0, verify=False, part=lazy.x.nbytes / 2)
    whole = store.dataset("train")
    assert not isinstance(held.x, np.ndarray)
    kept, streamed, known = (
        Frames.load(each, whole.statistics, partitions=2, ranks=ranks)
        for each in (held, lazy, whole)
    )
    assert isinstance(kept.stored, torch.Tensor) and not isinstance(streamed.stored, torch.Tensor)
    index = torch.arange(len(known))
    for each in (kept, streamed):
        assert torch.equal(each.x(index), known.x(index))


def test_partitions_are_streamed_in_blocks(data, tmp_path, monkeypatch):
    """Each partition in the order of its own blocks, read as wholes: the same bytes."""
    monkeypatch.setattr("tampl.training.frames.BLOCK_BYTES", 5 * 64)
    make_data(tmp_path / "store")
    lazy = Store.open(tmp_path / "store").dataset("train", memory=0).select(np.arange(7) % 4)
    whole, streamed = (
        make_trainer(each, Tampl(), ALONE, order="blocks", partitions=2, epochs=2)
        for each in (data, lazy)
    )
    for trainer in (whole, streamed):
        trainer.run_epoch(), trainer.run_epoch()
    weights = streamed.modules.state_dict()
    for name, value in whole.modules.state_dict().items():
        assert torch.equal(weights[name], value), name


def test_draws_that_belong_to_no_pair_have_to_be_named(data):
    class Odd(Jld):
        def _draw(self, modules, count, generator):
            return {**super()._draw(modules, count, generator), "odd": torch.rand(3)}

    trainer = make_trainer(data, Odd(), ALONE)
    with pytest.raises(InputError, match=r"draws `odd` of shape \(3,\) for 4 pairs"):
        trainer.first_batch(trainer.schedule[0][0])
    (stage,) = trainer.schedule[0]
    named = replace(stage, shared=frozenset({"odd"}))
    assert trainer.first_batch(named).noise["odd"].shape == (3,)


def test_a_lone_rank_changes_nothing():
    value = torch.ones(3)
    assert ALONE.mean(value) is value and ALONE.gather(value) is value
    assert ALONE.lead(lambda: value) is value and ALONE.agree(lambda: value) is value
    assert ALONE.leads and ALONE.share(nn.Identity()).training


# With communication: two processes by gloo


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_rank(rank, folder, ports):
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank)}
    os.environ |= {"LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    torch.set_num_threads(1)
    found = {}

    def next_group():
        os.environ["MASTER_PORT"] = str(ports.pop())

    next_group()
    with join("cpu") as ranks:
        data = make_data(folder / "store")
        found["compared"] = compare_all(data, ranks)
        if ranks.leads:  # a lone training, which waits for nobody
            found["lone"] = record(make_trainer(data, METHODS["jld-vic"], ALONE, epochs=25), 1)
        found["tensors"] = tell_tensors(ranks)
        found["errors"] = tell_errors(ranks, data)
        found["unused"] = record(make_trainer(data, Jld(), ranks, spec=with_unused()), 6)
        trainer = make_trainer(data, Tampl(), ranks, epochs=4)
        trainer.run_epoch(), trainer.run_epoch()
        found["state"] = {name: value.clone() for name, value in trainer.tensors().items()}
        training = TrainingSpec(epochs=2, batch_size=16, partitions=2, validate_every=1)
        model = Tampl().fit(
            data, data, training=training, architecture=SPEC, device="cpu", ranks=ranks
        )
        found["forecast"] = model.forecast(
            data.x[:2, 0], horizon=3, members=4, limits=False, progress=False
        ).samples
        found["card"] = (model.card, len(model.history), len(model.envelope.landmarks))
    recipe = read_recipe(folder / "shared.toml")
    try:
        next_group()
        with joined("cpu") as ranks:
            now = time.monotonic()
            train(
                recipe,
                folder / "data",
                folder / "left",
                device="cpu",
                deadline=now,
                ranks=ranks,
            )
    except SystemExit:
        found["followed"] = True
    os.environ["PYTHONWARNINGS"] = "error"
    words = ("--data", folder / "data", "--device", "cpu")
    for name, recipe in (("refused", TINY), ("trained", folder / "shared.toml")):
        next_group()
        found[name] = call("train", recipe, "--out", folder / name, *words)
    torch.save(found, folder / f"rank-{rank}.pt")


def tell_tensors(ranks):
    rows = torch.full((2 + ranks.rank, 3), float(ranks.rank))
    return ranks.gather(rows), ranks.mean(torch.tensor(float(ranks.rank)))


def tell_errors(ranks, data):
    """The names of the errors that are raised here, of those that one of the ranks meets."""

    def fail(rank, error):
        if ranks.rank == rank:
            raise error

    kinds = []
    diverging = {"learning_rate": 1e30, "clip": 0}
    for act in (
        lambda: ranks.agree(lambda: fail(1, InputError("of one rank"))),
        lambda: ranks.agree(lambda: fail(1, FileNotFoundError("nothing"))),
        lambda: ranks.lead(lambda: fail(0, ZeroDivisionError("a bug"))),
        lambda: interrupt(ranks),
        lambda: record(
            make_trainer(data, Tampl(), ranks, representation=diverging, transition=diverging), 50
        ),
    ):
        try:
            act()
        except (Exception, KeyboardInterrupt) as error:
            kinds.append(type(error).__name__)
    return kinds


def interrupt(ranks):
    with ranks.postponing_interrupts():
        if ranks.rank == 1:
            signal.raise_signal(signal.SIGTERM)
        ranks.look(1)  # no step at which ranks are asked
        ranks.look(32)


def with_unused():
    """An architecture whose encoder has a weight that no loss depends on."""

    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.used = nn.Linear(3 * 64, 3)
            self.unused = nn.Linear(2, 2)

        def forward(self, x):
            return self.used(x.flatten(1))

    from tampl.models.encoders import ModuleEncoderSpec

    with ambient_seed(0, "own"):
        return ModelSpec.model_validate(
            SPEC.model_dump() | {"encoder": ModuleEncoderSpec.of(Own())}
        )


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What two processes found, and the folder they worked in."""
    folder = tmp_path_factory.mktemp("two")
    text = TINY.read_text().replace("[training]", "[training]\npartitions = 2")
    (folder / "shared.toml").write_text(text)
    simulate(read_recipe(folder / "shared.toml"), folder / "data")
    make_data(folder / "store")
    ports = [free_port() for _ in range(4)]
    multiprocessing.spawn(run_rank, args=(folder, ports), nprocs=2)
    found = [torch.load(folder / f"rank-{rank}.pt", weights_only=False) for rank in (0, 1)]
    return (*found, folder)


@pytest.fixture(scope="module")
def alone(ranks):
    return compare_all(make_data(ranks[2] / "store"), ALONE)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPARED)
def test_two_ranks_make_the_steps_of_one(ranks, alone, name):
    losses, weights, scales = alone[name]
    assert len(losses) >= STEPS or COMPARED[name][1]
    for found in ranks[:2]:
        theirs, their_weights, their_scales = found["compared"][name]
        assert [stage for stage, _ in theirs] == [stage for stage, _ in losses]
        np.testing.assert_allclose(
            [loss for _, loss in theirs], [loss for _, loss in losses], rtol=1e-5
        )
        torch.testing.assert_close(their_weights, weights, rtol=1e-5, atol=1e-7)
        for theirs, ours in zip(their_scales, scales, strict=True):
            known = {key: value for key, value in vars(ours).items() if value is not None}
            assert {key: vars(theirs)[key] for key in known} == pytest.approx(known, rel=1e-5)


@pytest.mark.slow
def test_a_lone_training_beside_sums_over_nobody(ranks, alone):
    assert ranks[0]["lone"][0] == alone["jld-vic"][0][: len(ranks[0]["lone"][0])]


@pytest.mark.slow
def test_ranks_have_the_same_bytes(ranks):
    ours, theirs, _ = ranks
    for name in COMPARED:
        for key, value in ours["compared"][name][1].items():
            assert torch.equal(value, theirs["compared"][name][1][key]), (name, key)


@pytest.mark.slow
def test_rows_and_means_come_of_all_ranks(ranks):
    for found in ranks[:2]:
        rows, mean = found["tensors"]
        assert rows.tolist() == [[0.0] * 3] * 2 + [[1.0] * 3] * 3
        assert mean.item() == 0.5


@pytest.mark.slow
def test_what_one_rank_meets_is_raised_on_all(ranks):
    ours, theirs, _ = ranks
    common = ["KeyboardInterrupt", "DivergenceError"]
    assert ours["errors"] == ["InputError", "InputError", "ZeroDivisionError", *common]
    assert theirs["errors"] == ["InputError", "FileNotFoundError", "RuntimeError", *common]


@pytest.mark.slow
def test_a_weight_that_no_loss_depends_on_stays(ranks):
    data = make_data(ranks[2] / "store")
    losses, weights, _ = record(make_trainer(data, Jld(), ALONE, spec=with_unused()), 6)
    for found in ranks[:2]:
        assert [loss for _, loss in found["unused"][0]] == pytest.approx(
            [loss for _, loss in losses], rel=1e-5
        )
        torch.testing.assert_close(found["unused"][1], weights, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_one_rank_goes_on_from_two(ranks):
    data = make_data(ranks[2] / "store")
    resumed, whole = (make_trainer(data, Tampl(), ALONE, epochs=4) for _ in range(2))
    resumed.load(2, ranks[0]["state"])
    expected, _ = [whole.run_epoch() for _ in range(4)][2:]
    assert resumed.run_epoch().losses["representation"] == pytest.approx(
        expected.losses["representation"], rel=1e-5
    )
    resumed.run_epoch()
    torch.testing.assert_close(
        resumed.modules.state_dict(), whole.modules.state_dict(), rtol=1e-5, atol=1e-7
    )


@pytest.mark.slow
def test_fit_gives_every_rank_the_same_model(ranks):
    ours, theirs, _ = ranks
    assert np.array_equal(ours["forecast"], theirs["forecast"])
    assert ours["card"] == theirs["card"]


@pytest.mark.slow
def test_a_run_goes_on_with_fewer_ranks(ranks):
    """Left by two ranks after the first epoch, finished by one, compared with one from start."""
    _, theirs, folder = ranks
    assert theirs["followed"]
    left = len(read_json(folder / "left/history.json", ""))
    recipe = read_recipe(folder / "shared.toml")
    assert left == 1 and read_json(folder / "left/provenance.json", "")["ranks"] == 2
    resumed = train(recipe, folder / "data", folder / "left", device="cpu")
    whole = train(recipe, folder / "data", folder / "whole", device="cpu")
    assert resumed.finished and len(resumed.epochs) == len(whole.epochs) == 4
    for ours, expected in zip(resumed.epochs, whole.epochs, strict=True):
        for stage, losses in expected["losses"].items():
            assert ours["losses"][stage] == pytest.approx(losses, rel=1e-3)  # in float32


@pytest.mark.slow
def test_the_command_speaks_once(ranks):
    ours, theirs, folder = ranks
    ours["refused"].refused("`training.partitions` is 1", "2 ranks")
    assert ours["trained"].code == 0 and "epochs: 4" in ours["trained"].out
    for name in ("refused", "trained"):
        assert (theirs[name].code, theirs[name].out, theirs[name].err) == (0, "", "")
    assert (folder / "trained/last.safetensors").exists()


@pytest.mark.slow
def test_torchrun_starts_the_command(ranks):
    folder = ranks[2]
    launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    words = ("-m", "tampl", "train", folder / "shared.toml", "--data", folder / "data")
    done = subprocess.run(
        [sys.executable, *launch, *words, "--out", folder / "run", "--device", "cpu", "--json"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1 and '"epochs": 4' in done.stdout
    command = read_json(folder / "run/provenance.json", "")["command"]
    assert command.startswith("python -m tampl train")


@pytest.mark.parametrize("verb", ["simulate", "evaluate"])
def test_verbs_of_one_process_refuse_torchrun(monkeypatch, verb):
    monkeypatch.setenv("WORLD_SIZE", "2")
    call(verb, "anything").refused("torchrun", f"tampl {verb}")
