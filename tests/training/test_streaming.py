"""Frames that are not in memory: the same weights, whatever the order and the method."""

import numpy as np
import pytest
import torch

from tampl.data import Normalization
from tampl.data.dataset import Dataset
from tampl.description import Observable
from tampl.errors import InputError
from tampl.methods import METHODS, Tampl
from tampl.microstates import Vector
from tampl.seeding import torch_generator
from tampl.training import frames as frames_module
from tampl.training.frames import Frames, Selection, select
from tampl.training.streaming import Blocks, Outside, read_ahead


@pytest.fixture
def lazy(bench):
    return bench.store.dataset("train", memory=0)


@pytest.fixture
def streamed(bench, lazy, device):
    return Frames.load(lazy, bench.statistics, device=device, dtype=torch.float64)


@pytest.fixture
def small_blocks(bench, monkeypatch):
    """Blocks of five frames, two of them together, so that the tiny data have several groups."""
    monkeypatch.setattr(frames_module, "BLOCK_BYTES", 5 * 64)
    monkeypatch.setattr(frames_module, "BLOCKS_TOGETHER", 2)
    assert bench.frames.block == 5


def weights(bench, frames, name, **settings):
    """The weights after two epochs on frames."""
    bench = type(bench)(bench.store, bench.data, bench.statistics, frames)
    method = Tampl(lags=(1, 2)) if name == "tampl-lags" else METHODS[name]
    trainer = bench.trainer(method, bench.training(**settings))
    losses = [trainer.run_epoch().losses for _ in range(2)]
    return trainer.tensors(), losses


@pytest.mark.parametrize("order", ["random", "blocks"])
@pytest.mark.parametrize("name", ["tampl", "tampl-lags", "jld-recon", "vamp", "macro-only"])
@pytest.mark.parametrize("lag", [1, 2])
def test_streamed_frames_give_the_same_weights(bench, lazy, small_blocks, name, order, lag):
    options = {"device": bench.frames.device, "dtype": torch.float64, "lag": lag}
    whole, streamed = (
        Frames.load(data, bench.statistics, **options) for data in (bench.data, lazy)
    )
    window = {"jld-recon": 3}.get(name, 2)
    settings = {"order": order, "window": window, "fraction": 0.8, "lag": lag}
    one, losses = weights(bench, whole, name, **settings)
    other, same = weights(bench, streamed, name, **settings)
    assert losses == same
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_an_order_is_a_permutation_in_groups_of_blocks(bench, small_blocks):
    training = bench.training(order="blocks")
    selection = select(bench.frames, training, 0)[0]
    generator = torch_generator(0, "order", device=bench.frames.device)
    starts = torch.cat(list(selection.batches(7, generator)))
    assert torch.equal(starts.sort().values, selection.starts.sort().values)
    blocks = (starts // 5).tolist()
    # Windows of two blocks are mixed until both have no more; then two others follow.
    groups = [sorted(set(blocks[i:])) for i in range(len(blocks))]
    changes = [i for i in range(1, len(groups)) if len(groups[i]) < len(groups[i - 1])]
    assert len(changes) == len(set(blocks)) - 1
    seen = list(dict.fromkeys(blocks))
    for first, second in zip(seen[::2], seen[1::2], strict=False):
        places = [i for i, block in enumerate(blocks) if block in (first, second)]
        assert places == list(range(places[0], places[0] + len(places)))


def test_few_blocks_are_one_group(bench):
    """Data that fit into a group are in the random order of all their windows."""
    plain = select(bench.frames, bench.training(), 0)[0]
    blocks = Selection(plain.starts, plain.window, block=bench.frames.block)
    orders = [
        torch.cat(list(each.batches(7, torch_generator(3, "order")))) for each in (plain, blocks)
    ]
    assert torch.equal(*orders)


def test_blocks_are_read_once(bench, lazy):
    """In the order of blocks the disk is read in sequence, each block a single time."""
    outside, asked = Outside(lazy.x, None, torch.device("cpu")), []

    class Counting(Outside):
        def read(self, index):
            asked.append((index[0], index[-1]))
            assert np.array_equal(index, np.arange(index[0], index[-1] + 1))
            return super().read(index)

    blocks = Blocks(Counting(lazy.x, None, torch.device("cpu")), 5, reach=2, kept=2)
    for starts in ([0, 3, 7], [4, 9], [11, 14], [10]):
        index = np.array(starts)[:, None] + np.arange(2)
        found = blocks.read(np.array(starts), index)
        assert np.array_equal(found, outside.read(index.ravel()))
    assert [first for first, _ in asked] == [0, 5, 10]


def test_a_larger_sets_symmetries_are_refused(bench, streamed):
    bench = type(bench)(bench.store, bench.data, bench.statistics, streamed)
    with pytest.raises(InputError, match="allow more `memory`"):
        bench.trainer(METHODS["tampl"], bench.training(symmetries=["shift"]))


@pytest.mark.parametrize(("side", "batches"), [(8, 16), (1024, 4), (8192, 2)])
def test_large_frames_are_read_less_far_ahead(side, batches):
    frames = np.broadcast_to(np.uint8(0), (1, 1, side, side))
    assert Outside(frames, None, torch.device("cpu")).count_ahead(64) == batches


def test_no_more_is_read_than_asked_for():
    read = []
    ahead = read_ahead(iter(range(9)), read.append, ahead=2, threads=1)
    for place in range(9):
        next(ahead)
        assert len(read) <= place + 3
    assert read == list(range(9))


def test_what_a_reader_raises_reaches_the_training():
    def fail(item):
        raise InputError(f"no {item}")

    with pytest.raises(InputError, match="no 1"):
        list(read_ahead([1, 2, 3], fail))


@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("holes", [False, True])
def test_statistics_of_vectors_are_the_same_bits(size, holes, monkeypatch):
    monkeypatch.setattr("tampl.data.dataset._NUMBERS_AT_ONCE", 16)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9, 7, size)) * [3.0] * size + 1
    x[..., 1] = 4.0
    present = np.arange(7) < rng.integers(2, 8, (9, 1)) if holes else None

    class Stored:
        shape, dtype, nbytes = x.shape, x.dtype, x.nbytes

        def read(self, index):
            return x.reshape(-1, size)[index]

    known = ... if present is None else present
    whole = Normalization.fit_inputs(x[known])
    parts = Normalization.fit_read_inputs(Stored(), present)
    assert np.array_equal(whole.mean, parts.mean)
    assert np.array_equal(whole.std, parts.std)


def test_a_notebook_trains_on_frames_that_it_reads(tmp_path):
    """`fit` on a lazy data set of vectors gives the model of the same set in memory."""
    from tampl.data import Store
    from tampl.data.manifest import DataPlan, Manifest, Split
    from tampl.data.shards import encode_labels, write_shard
    from tampl.data.store import write_manifest

    rng = np.random.default_rng(1)
    x = rng.normal(size=(8, 6, 3)).cumsum(axis=1)
    data = Dataset(
        x, x[..., :1], microstate=Vector(size=3), observables=[Observable(name="a", symbol="a")]
    )
    plan = DataPlan(train=8, valid=1, test=2, members=1, shard_size=3)
    shards = [s for s in plan.shards(data.description) if s.split == "train"]
    manifest = Manifest(
        description=data.description,
        seed=0,
        kernel="none",
        code_version="0",
        splits={"train": Split(count=8)},
        shards=tuple(shards),
    )
    (tmp_path / "shards").mkdir()
    write_manifest(tmp_path, manifest)
    for shard in shards:
        rows = slice(shard.start, shard.start + shard.count)
        arrays = {
            "microstates": data.x[rows],
            "macrostates": data.y[rows],
            "labels": encode_labels([""] * shard.count),
        }
        write_shard(tmp_path / shard.file, arrays, manifest=manifest, shard=shard)
    store, models = Store.open(tmp_path), []
    for memory in (None, 0):
        whole = store.dataset("train", memory=memory)
        train, valid = whole.split(0.7, 0.3)
        options = {"epochs": 2, "seed": 3, "device": "cpu", "progress": False}
        models.append(METHODS["tampl"].fit(train, valid, **options))
    one, other = (model.state_dict() for model in models)
    assert all(torch.equal(one[key], other[key]) for key in one)
