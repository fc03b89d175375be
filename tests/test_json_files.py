import pytest

from tampl.errors import InputError
from tampl.files import read_json, strict_json


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "scores.json"
    path.write_text(strict_json({"name": "Δt", "values": [1, float("inf")]}))
    assert read_json(path, "") == {"name": "Δt", "values": [1, None]}


@pytest.mark.parametrize("content", [b"", b'{"a": 1', b'"\xff"'])
def test_a_damaged_file_is_refused_with_the_remedy(tmp_path, content):
    path = tmp_path / "scores.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"scores\.json is damaged \(.*\); make it again"):
        read_json(path, "make it again")


def test_a_missing_file_is_refused_with_the_remedy(tmp_path):
    with pytest.raises(InputError, match=r"scores\.json does not exist; make it first"):
        read_json(tmp_path / "scores.json", "make it first")
