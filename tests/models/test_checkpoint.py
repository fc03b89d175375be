"""Models on disk: bit for bit, readable without us, and refused where damaged or foreign."""

import json
import struct
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from tampl.errors import InputError
from tampl.models import load_model
from tampl.models.checkpoint import (
    load_latest_tensors,
    load_tensors,
    previous_file,
    refuse_unlike,
    save_tensors,
)
from tampl.models.model import FORMAT

LOAD = """
import sys
from pathlib import Path
from tampl.models import load_model
load_model(Path(sys.argv[1]))
print([name for name in sys.modules if name.startswith(("tampl.methods", "tampl.evaluation"))])
"""


@pytest.fixture
def saved(macro_model, tmp_path):
    path = tmp_path / "model.safetensors"
    macro_model.save(path)
    return path


def rewrite(path, *, header=None, tensors=None):
    """Writes a checkpoint again with some of its header and tensors changed."""
    old_tensors, old_header = load_tensors(path, FORMAT)
    changed = {**old_tensors, **(tensors or {})}
    kept = {name: tensor for name, tensor in changed.items() if tensor is not None}
    save_tensors(path, kept, {**old_header, **(header or {})})


def refuses(path, words):
    with pytest.raises(InputError, match=words) as caught:
        load_model(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["flow", "mlp", "linear"])
@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
def test_a_round_trip_is_bit_for_bit(make_model, lattices, tmp_path, kind, precision, device):
    model = make_model(kind, dtype=precision)
    path = tmp_path / "model.safetensors"
    model.save(path)
    loaded = load_model(path, device=device)
    assert not loaded.training
    assert (loaded.spec, loaded.description) == (model.spec, model.description)
    before, after = model.state_dict(), loaded.state_dict()
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert tensor.dtype == after[name].dtype and torch.equal(tensor, after[name])
    assert next(loaded.encoder.parameters()).dtype == precision
    assert loaded.y_mean.dtype == torch.float64
    run = lambda model: model.forecast(lattices, horizon=3, members=4, seed=1, progress=False)
    assert run(model).samples.tobytes() == run(loaded).samples.tobytes()


def test_saving_twice_gives_the_same_bytes(saved, tmp_path):
    again = tmp_path / "again.safetensors"
    load_model(saved).save(again)
    assert again.read_bytes() == saved.read_bytes()


def test_the_file_is_readable_by_hand(macro_model, saved):
    # Eight bytes of length, a JSON header, numbers: nothing to run, so nothing that could be.
    content = saved.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    metadata = json.loads(header.pop("__metadata__")["json"])
    assert metadata["format"] == "tampl-model-4"
    assert metadata["description"]["system"] == "sirs"
    weights = macro_model.state_dict()
    assert header.keys() == weights.keys()
    for name, entry in header.items():
        start, end = (8 + length + offset for offset in entry["data_offsets"])
        assert content[start:end] == weights[name].cpu().numpy().tobytes()


def test_the_file_is_readable_by_safetensors_alone(macro_model, saved):
    with safe_open(saved, framework="numpy") as file:
        np.testing.assert_array_equal(file.get_tensor("y_mean"), macro_model.y_mean.cpu().numpy())


def test_loading_needs_no_method(saved):
    command = [sys.executable, "-c", LOAD, str(saved)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize("keep", [0, 4, 100, 2000, -1])
def test_a_truncated_file_is_refused(saved, keep):
    saved.write_bytes(saved.read_bytes()[:keep])
    refuses(saved, "is damaged")


def test_what_is_absent_or_no_file_is_refused(tmp_path):
    refuses(tmp_path / "nowhere.safetensors", "does not exist; train a model first")
    refuses(tmp_path, "does not exist")


def test_a_pickle_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    torch.save({"weight": torch.zeros(3)}, path)
    refuses(path, "is damaged")


def test_foreign_tensors_are_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.zeros(3)}, path)
    refuses(path, "has format None, not 'tampl-model-4'")


@pytest.mark.parametrize("header", ["{", "[]", "3", "null", '"text"'])
def test_a_header_that_is_no_table_is_refused(tmp_path, header):
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.zeros(3)}, path, metadata={"json": header})
    refuses(path, "is damaged|has format None")


def test_another_format_is_refused(saved):
    rewrite(saved, header={"format": "tampl-model-99"})
    refuses(saved, "has format 'tampl-model-99', and this version .*install a newer tampl")


def test_envelopes_are_kept(make_model, small_sirs, tmp_path):
    from tampl.data import write_miniature

    model = make_model()
    train = write_miniature(small_sirs, tmp_path / "store").dataset("train")
    model.enclose(train)
    model.save(tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors", device="cpu")
    before, after = model.state_dict(), loaded.state_dict()
    assert {"envelope.radius", "likeness.scale", "likeness.envelope.landmarks"} <= before.keys()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    strange = np.full((1, 8, 8), 2, np.uint8)  # nobody is susceptible, as never in training
    run = lambda x: loaded.forecast(x, horizon=2, members=3, progress=False).inside[:, :, 0]
    assert run(train.x[:, 0]).all() and not run(strange).any()


@pytest.mark.parametrize(
    "other", ["tampl-model-0", "tampl-model-4x", "tampl-model-", "model-2", 2, None, ["a"], {}]
)
def test_what_is_no_format_of_ours_is_refused(saved, other):
    rewrite(saved, header={"format": other})
    refuses(saved, "has format .*, not 'tampl-model-4'.*this version of tampl")


def test_a_file_with_nothing_but_statistics_is_refused(saved):
    tensors, header = load_tensors(saved, FORMAT)
    kept = {name: tensor for name, tensor in tensors.items() if name.startswith("y_")}
    save_tensors(saved, kept, header)
    refuses(saved, "does not hold the model it describes")


@pytest.mark.parametrize(
    "changes",
    [
        {"header": {"spec": None}},
        {"header": {"spec": {"latent_dim": 3}}},
        {"header": {"description": {}}},
        {"tensors": {"y_mean": None}},
        {"tensors": {"y_std": torch.zeros(3, dtype=torch.float64)}},
        {"tensors": {"readout.0.weight": None}},
        {"tensors": {"encoder.head.0.bias": None}},
        {"tensors": {"encoder.head.0.bias": torch.zeros(99)}},
        {"tensors": {"stowaway": torch.zeros(3)}},
    ],
    ids=str,
)
def test_a_file_that_contradicts_itself_is_refused(saved, changes):
    rewrite(saved, **changes)
    refuses(saved, "does not hold the model it describes")


def test_an_interrupted_save_leaves_the_old_model(macro_model, saved, monkeypatch):
    before = saved.read_bytes()

    def fail(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(KeyboardInterrupt):
        macro_model.save(saved)
    assert saved.read_bytes() == before and list(saved.parent.iterdir()) == [saved]


def test_no_flipped_bit_changes_a_model(macro_model, saved):
    """In names, shapes, header or numbers; one in the name of the checksum itself is harmless."""
    content = saved.read_bytes()
    places = np.random.default_rng(0).integers(0, 8 * len(content), 300)
    for place in places:
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        saved.write_bytes(damaged)
        try:
            loaded = load_model(saved)
        except InputError as error:
            assert "\n" not in str(error)
            continue
        assert (loaded.spec, loaded.description) == (macro_model.spec, macro_model.description)
        for name, tensor in macro_model.state_dict().items():
            assert torch.equal(loaded.state_dict()[name].cpu(), tensor.cpu())


def test_a_flipped_bit_of_a_weight_is_named(saved):
    content = bytearray(saved.read_bytes())
    content[-1] ^= 64
    saved.write_bytes(content)
    refuses(saved, "is damaged .it differs from its checksum.; restore it")


def test_a_file_from_before_there_were_checksums_is_read(macro_model, saved):
    tensors, header = load_tensors(saved, FORMAT)
    # Some versions of safetensors leave tensors in the file, which is overwritten here.
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    assert "checksum" not in header
    save_file(tensors, saved, metadata={"json": json.dumps(header)})
    refuses(saved, "is damaged .it lacks its checksum.; restore it")
    older = json.dumps({**header, "format": "tampl-model-2"})
    save_file(tensors, saved, metadata={"json": older})
    loaded = load_model(saved)
    for name, tensor in macro_model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name].cpu(), tensor.cpu())


@pytest.mark.parametrize("name", ["readout.0.weight", "transition.velocity", "y_mean"])
@pytest.mark.parametrize("number", [torch.bfloat16, torch.float16, torch.int64, torch.complex64])
def test_other_types_of_numbers_are_refused(saved, name, number):
    tensors, header = load_tensors(saved, FORMAT)
    (name, *_) = [key for key in tensors if key.startswith(name)]
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    tensors[name] = tensors[name].to(number)
    header = {**header, "format": "tampl-model-2"}
    try:
        save_file(tensors, saved, metadata={"json": json.dumps(header)})
    except KeyError:
        pytest.skip(f"this version of safetensors does not write {number}")
    refuses(saved, f"`{name}` as {number}".replace(".", r"\.") + "|is damaged")


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 500 + "]" * 500, "9" * 5000, '{"a":'])
def test_a_header_of_absurd_json_is_refused(tmp_path, text):
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.zeros(3)}, path, metadata={"json": text})
    refuses(path, "is damaged")


def test_the_checkpoint_before_a_damaged_one_is_taken(tmp_path, capsys):
    path = tmp_path / "state.safetensors"
    for epoch in (1, 2, 3):
        state = {"epoch": epoch, "format": "tampl-state-1"}
        save_tensors(path, {"a": torch.full((9,), float(epoch))}, state, keep_previous=True)
    previous = previous_file(path)
    assert {p.name for p in tmp_path.iterdir()} == {path.name, "state.previous.safetensors"}
    assert load_latest_tensors(path, "tampl-state-1")[1]["epoch"] == 3
    content = path.read_bytes()
    for damage in (b"", content[:-7], content[:-1] + b"!"):
        path.write_bytes(damage)
        tensors, header = load_latest_tensors(path, "tampl-state-1")
        assert header["epoch"] == 2 and tensors["a"][0] == 2
        assert "state.previous.safetensors, the checkpoint before it" in capsys.readouterr().err
    previous.write_bytes(b"")
    with pytest.raises(InputError, match=r"state\.safetensors is damaged"):
        load_latest_tensors(path, "tampl-state-1")


def test_tensors_are_compared_by_name_shape_and_type():
    expected = {"a": torch.zeros(2, 3), "b": torch.tensor(0)}
    refuse_unlike({"a": torch.ones(2, 3), "b": torch.tensor(7)}, expected, "it")
    for other, words in (
        ({"a": torch.zeros(2, 3)}, "it lacks `b`"),
        ({**expected, "c": torch.zeros(1)}, "it has an unknown tensor `c`"),
        ({**expected, "a": torch.zeros(3, 2)}, r"it has `a` as torch.float32 of shape \(3, 2\)"),
        ({**expected, "a": torch.zeros(2, 3).double()}, "it has `a` as torch.float64"),
    ):
        with pytest.raises(InputError, match=words):
            refuse_unlike(other, expected, "it")
