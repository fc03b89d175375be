"""Architectures as data: what fits is built, what does not fit is refused beforehand."""

import pytest
import torch
from pydantic import TypeAdapter

from tampl.errors import InputError
from tampl.microstates import Lattice, Vector
from tampl.models import DeterministicTransition, FlowTransition, ModelSpec
from tampl.models.encoders import AnyEncoder
from tampl.models.readouts import MLPReadoutSpec
from tampl.models.transitions import AnyTransition
from tampl.nn import MLP

KINDS = {"lattice": Lattice(height=8, width=6, states=3), "vector": Vector(size=7)}
NEEDS = {"lattice": "lattice", "mlp": "vector", "linear": "vector"}
TRANSITIONS = {
    "linear": DeterministicTransition,
    "mlp": DeterministicTransition,
    "flow": FlowTransition,
}


def encoder(name):
    return TypeAdapter(AnyEncoder).validate_python({"name": name})


def transition(name, **settings):
    return TypeAdapter(AnyTransition).validate_python({"name": name, **settings})


def model(**changes):
    base = {"latent_dim": 4, "encoder": {"name": "lattice"}, "transition": {"name": "flow"}}
    return {**base, **changes}


@pytest.mark.parametrize("name", NEEDS)
def test_an_encoder_takes_its_kind_of_microstate(name):
    kind = KINDS[NEEDS[name]]
    stored = torch.zeros(2, *kind.shape, dtype=torch.uint8)
    x = kind.network_input(stored, torch.float32)
    assert encoder(name).build(kind, 5)(x).shape == (2, 5)


@pytest.mark.parametrize("name", NEEDS)
def test_an_encoder_refuses_the_other_kind(name):
    other = "vector" if NEEDS[name] == "lattice" else "lattice"
    message = f"`{name}` takes {NEEDS[name]} microstates, not {other} ones.*model.encoder.name"
    with pytest.raises(InputError, match=message):
        encoder(name).build(KINDS[other], 5)


@pytest.mark.parametrize("name", TRANSITIONS)
def test_transitions_are_built_by_name(name):
    assert type(transition(name).build(4)) is TRANSITIONS[name]


@pytest.mark.parametrize("solver", ["euler", "midpoint", "rk4"])
def test_the_solver_of_a_flow_is_the_one_named(solver):
    built = transition("flow", solver=solver, steps=3).build(4)
    assert built.step.__name__ == solver and built.steps == 3


def test_the_linear_encoder_is_a_matrix():
    built = encoder("linear").build(KINDS["vector"], 5)
    assert [tuple(p.shape) for p in built.parameters()] == [(5, 7)]


def test_the_linear_transition_starts_at_the_identity():
    z = torch.randn(5, 4)
    assert torch.equal(transition("linear").build(4)(z, torch.empty(5, 0)), z)


def test_a_readout_without_hidden_layers_is_affine():
    built = MLPReadoutSpec(name="mlp", hidden=()).build(4, 3)
    assert isinstance(built, MLP) and len(built) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"latent_dim": 0},
        {"latent_dim": "many"},
        {"encoder": {"name": "transformer"}},
        {"encoder": {}},
        {"encoder": "lattice"},
        {"encoder": {"name": "lattice", "widths": []}},
        {"encoder": {"name": "lattice", "widths": [8, 0]}},
        {"encoder": {"name": "linear", "hidden": [8]}},
        {"transition": {"name": "diffusion"}},
        {"transition": {"name": "flow", "solver": "heun"}},
        {"transition": {"name": "flow", "steps": 0}},
        {"transition": {"name": "linear", "steps": 3}},
        {"readout": {"name": "mlp", "hidden": [-1]}},
        {"colour": "red"},
    ],
    ids=str,
)
def test_impossible_specifications_are_refused(changes):
    with pytest.raises(ValueError):
        ModelSpec.model_validate(model(**changes))


@pytest.mark.parametrize("name", TRANSITIONS)
def test_a_specification_survives_json(name):
    spec = ModelSpec.model_validate(model(transition={"name": name}))
    assert ModelSpec.model_validate_json(spec.model_dump_json()) == spec
    with pytest.raises(ValueError, match="frozen"):
        spec.latent_dim = 5
