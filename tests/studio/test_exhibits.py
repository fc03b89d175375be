"""What is loaded for a studio: models by name, their system, test states."""

import numpy as np
import pytest

import tampl
from tampl.data import Dataset
from tampl.errors import InputError
from tampl.models import Ensemble
from tampl.studio import find_models, open_exhibit
from tampl.studio.exhibits import Exhibit, ShownModel


def test_the_folder_of_a_comparison_stands_for_its_runs(trained, exhibit):
    assert find_models(trained.folder) == [trained.runs / "tampl-0", trained.runs / "tampl+-0"]
    assert [shown.name for shown in exhibit.models] == ["TAMPL+", "TAMPL"]
    assert all(len(shown.history) >= 4 for shown in exhibit.models)
    assert exhibit.system is not None
    assert set(exhibit.closures) == {"mean_field", "pair"}


def test_test_states_are_those_of_the_store(trained, exhibit):
    references = tampl.data.Store.open(trained.data).references("test")
    assert np.array_equal(exhibit.held_out.x, references.x)
    assert np.array_equal(exhibit.held_out.y, references.y)
    assert exhibit.held_out.paths is None


def test_files_and_ensembles_are_shown_too_and_told_apart(trained, tmp_path):
    run = trained.runs / "tampl-0"
    model = tampl.load(run / "best.safetensors", device="cpu")
    Ensemble([model, model]).save(tmp_path / "pair")
    model.save(tmp_path / "model.safetensors")
    paths = [run, run, tmp_path / "model.safetensors", tmp_path / "pair"]
    exhibit = open_exhibit(paths, device="cpu")
    names = [shown.name for shown in exhibit.models]
    assert len(set(names)) == 4
    assert names[2:] == ["model", "pair"]
    assert exhibit.models[2].history == ()


def test_models_and_data_of_other_systems_are_refused(trained, tmp_path, macro_model):
    macro_model.save(tmp_path / "other.safetensors")
    with pytest.raises(InputError, match="different systems"):
        open_exhibit([trained.folder, tmp_path / "other.safetensors"], device="cpu")
    with pytest.raises(InputError, match="different systems"):
        open_exhibit([tmp_path / "other.safetensors"], data=trained.data, device="cpu")
    with pytest.raises(InputError, match="does not exist"):
        open_exhibit([tmp_path / "nothing"], device="cpu")
    with pytest.raises(InputError, match="`models` is empty"):
        open_exhibit([])


def test_own_data_has_no_simulator_and_shows_what_was_held_out(macro_model):
    own = macro_model.description.model_copy(update={"system": "own data", "parameters": {}})
    macro_model.description = own
    exhibit = Exhibit([ShownModel("own", macro_model)])
    assert exhibit.observe(np.zeros((8, 8), np.uint8)) is None
    assert exhibit.observe(np.zeros((8, 8), np.uint8), [0.5, 0.5, 0.0]).tolist() == [0.5, 0.5, 0]
    with pytest.raises(InputError, match="`y0` has 2 numbers; give 3"):
        exhibit.observe(np.zeros((8, 8), np.uint8), [0.5, 0.5])


def test_trajectories_that_were_held_out_bring_their_microstates(trained):
    from tampl.studio import exhibits

    store = tampl.data.Store.open(trained.data)
    data = store.dataset("train")

    class Whole:
        manifest = store.manifest.model_copy(
            update={"splits": {"test": store.manifest.splits["train"]}}
        )

        def dataset(self, split):
            again = Dataset.described(data.description, data.x, data.y, data.labels)
            order = np.array([2, 0, 1, 3])
            return again.select(order)

    held = exhibits._read_held_out(Whole())
    assert held.paths.shape[:2] == held.y[:, 0].shape[:2]
    assert np.array_equal(held.paths[:, 0], held.x)
