import pytest
from lattice_walk import LatticeWalk

from tampl.data import DataPlan, generate


@pytest.fixture
def system():
    return LatticeWalk()


@pytest.fixture
def plan():
    return DataPlan(seed=3, train=5, valid=2, test=3, members=4, shard_size=2)


@pytest.fixture
def store(system, plan, tmp_path):
    return generate(system, plan, tmp_path / "store", workers=1, progress=False)


@pytest.fixture
def snapshot():
    """The bytes of every file under a folder, by relative path."""

    def take(folder):
        files = (path for path in sorted(folder.rglob("*")) if path.is_file())
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}

    return take
