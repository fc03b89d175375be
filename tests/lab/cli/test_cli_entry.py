"""Where the command begins: its verbs, its version, and how little it loads."""

import subprocess
import sys

import pytest

from command import call
from tampl.lab.cli.entry import VERBS
from tampl.lab.sources import FORMATS, PUBLISHED
from tampl.methods import METHODS

HEAVY = ("h5py", "matplotlib", "numba", "numpy", "scipy", "torch")


def test_help_and_version():
    assert "simulate" in call("--help").out
    assert call("--version").out.strip().count(".") == 2


@pytest.mark.parametrize("verb", [*VERBS, "linear"])
def test_every_verb_explains_itself(verb):
    outcome = call(verb, "--help")
    assert outcome.code == 0
    assert f"tampl {verb}" in outcome.out


def test_help_lists_the_methods_and_formats():
    for verb in ("train", "compare", "sweep"):
        text = call(verb, "--help").out
        assert all(name in text for name in METHODS), text
    assert all(name in call("import", "--help").out for name in [*FORMATS, *PUBLISHED])


def test_the_list_of_verbs_loads_nothing_heavy():
    program = f"""
import sys
from tampl.lab.cli import main
sys.argv = ["tampl", "--help"]
try:
    main()
finally:
    print("loaded:", *[name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "loaded:", done


def test_a_run_is_opened_and_forecast_without_a_simulator():
    """A model that starts from its latent state needs no system."""
    heavy = ("matplotlib", "numba", "tampl.systems.sirs")
    program = f"""
import sys, tampl.lab.runs, tampl.lab.pipeline
print(*[name for name in {heavy} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done


def test_nothing_heavy_loads_at_the_start():
    program = f"import sys, tampl.lab.cli; print(*[n for n in {HEAVY} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done


@pytest.mark.parametrize(
    ("command", "helps"),
    [
        ("trian", "tampl --help"),
        ("train", "tampl train --help"),
        ("linear", "tampl linear --help"),
        ("linear case1 --updates 0", "tampl linear case1 --help"),
    ],
)
def test_a_wrong_call_leads_to_the_help_that_explains_it(command, helps):
    call(*command.split()).refused(f"(see `{helps}`)")


def test_a_file_that_is_not_there_is_named_first():
    outcome = call("linear", "certify", "nothing.npz")
    outcome.refused("tampl: nothing.npz: No such file or directory; see that")
