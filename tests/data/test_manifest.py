import json

import pytest
from lattice_walk import LatticeWalk

from tampl.data.manifest import DataPlan, Manifest, Shard, Split
from tampl.description import first_difference

COUNTS = {"train": 5, "valid": 2, "test": 3, "members": 4}


@pytest.fixture
def manifest(store):
    return store.manifest


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_an_empty_split_is_called_one(split):
    with pytest.raises(ValueError, match=f"`{split}` is 0: an empty split"):
        DataPlan(**{**COUNTS, split: 0})


@pytest.mark.parametrize(
    "wrong",
    [
        {"members": 0},
        {"shard_size": 0},
        {"train_runs": 0},
        {"valid_runs": -1},
        {"seed": -1},
        {"seed": 2**63},
        {"tests": 1},
    ],
)
def test_a_wrong_plan_is_refused_by_name(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        DataPlan(**{**COUNTS, **wrong})


@pytest.mark.parametrize("counts", [COUNTS, {**COUNTS, "train": 1000}])
@pytest.mark.parametrize("size", [None, 1, 3, 2000])
def test_shards_cover_every_split_once(counts, size):
    plan = DataPlan(**counts, shard_size=size)
    shards = plan.shards(LatticeWalk().description)
    for name, split in plan.splits.items():
        covered = [i for s in shards if s.split == name for i in range(s.start, s.start + s.count)]
        assert covered == list(range(split.count))


def test_default_shards_are_small_and_spread():
    description = LatticeWalk(size=512, frames=40).description
    shards = DataPlan(train=1000, valid=1, test=100, members=8).shards(description)
    largest = max(s.count for s in shards if s.split == "train")
    assert largest * 512 * 512 * 40 <= 32 * 2**20
    assert sum(s.split == "test" for s in shards) >= 32
    several = DataPlan(train=1000, valid=1, test=2, members=2, train_runs=3).shards(description)
    assert max(s.count for s in several if s.split == "train") == 1
    huge = LatticeWalk(size=512, frames=400).description
    assert {s.count for s in DataPlan(**COUNTS).shards(huge)} == {1}


def test_identity_is_of_the_data_and_not_of_the_code(manifest):
    read = Manifest.model_validate(json.loads(manifest.model_dump_json()))
    assert read == manifest and read.identity == manifest.identity
    assert manifest.model_copy(update={"code_version": "9"}).identity == manifest.identity
    for change in ({"seed": 4}, {"kernel": "walk-cuda-1"}):
        tree = {**manifest.model_dump(), **change}
        assert Manifest.model_validate(tree).identity != manifest.identity


def test_one_run_each_is_not_mentioned_and_several_are_another_identity(manifest):
    assert '"runs"' not in manifest.model_dump_json()
    tree = manifest.model_dump()
    tree["splits"]["train"]["runs"] = 2
    several = Manifest.model_validate(tree)
    assert several.identifying()["splits"]["train"] == {"count": 5, "members": 0, "runs": 2}
    assert Manifest.model_validate_json(several.model_dump_json()) == several
    assert several.identity != manifest.identity


def test_references_have_members_and_no_runs():
    with pytest.raises(ValueError, match="`members` and no `runs`"):
        Split(count=1, members=2, runs=2)


def test_a_manifest_must_cover_its_splits(manifest):
    tree = manifest.model_dump()
    for shards in (tree["shards"][1:], tree["shards"][:-1], tree["shards"] * 2):
        with pytest.raises(ValueError, match="`shards`"):
            Manifest.model_validate({**tree, "shards": shards})
    with pytest.raises(ValueError, match="lacks"):
        Manifest.model_validate({**tree, "splits": {"train": Split(count=5)}})


@pytest.mark.parametrize("file", ["../train.h5", "shards/../x.h5", "/etc/x.h5", "shards/x.npz"])
def test_a_shard_stays_in_its_folder(file):
    with pytest.raises(ValueError, match="file"):
        Shard(file=file, split="train", start=0, count=1)


def test_first_difference_names_the_key():
    here = {"a": {"b": [1, {"c": 2.0}]}, "d": "x"}
    assert first_difference(here, json.loads(json.dumps(here))) is None
    assert first_difference(here, {**here, "d": "y"}) == ("d", '"x"', '"y"')
    assert first_difference(here, {"a": {"b": [1, {"c": 3}]}, "d": 0}) == ("a.b.1.c", "2.0", "3")
    assert first_difference({"a": [1]}, {"a": [1, 2]}) == ("a.1", "absent", "2")
    assert first_difference({"a": 1, "b": None}, {"a": 1}) == ("b", "null", "absent")
