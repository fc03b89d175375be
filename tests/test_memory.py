"""How much memory there is, by the files of a machine and of a control group."""

from tampl import memory


def test_a_machine_has_some():
    assert 2**20 < memory.available_memory() < 2**60


def test_a_container_may_have_less(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    whole = memory.available_memory()
    assert whole > 3000
    (tmp_path / "memory.current").write_text("5000\n")
    (tmp_path / "memory.stat").write_text("anon 3000\ninactive_file 1000\n")
    (tmp_path / "memory.max").write_text("7000\n")
    assert memory.available_memory() == 3000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available_memory() > 3000
