"""ResNet-34: torchvision's parameters, batch normalisation that is fixed, and gray pictures."""

import pytest
import torch
from torch import nn
from torch.nn.functional import batch_norm, conv2d, max_pool2d, relu

from tampl.nn import ResNet, group_norm
from tampl.seeding import ambient_seed

SMALL = {"widths": (4, 6, 8, 10), "blocks": (1, 2, 1, 1)}


def randomised(norm=nn.BatchNorm2d):
    """A network in which no parameter and no statistic is at its first value."""
    with ambient_seed(0, "resnet"):
        network = ResNet(3, norm=norm, **SMALL)
        for name, value in network.state_dict().items():
            if value.ndim == 1 or name == "mean":
                value.copy_(0.5 + torch.rand_like(value))
    return network


def normalise_groups(x, scale, shift):
    """Group normalisation by its definition: each picture by itself, channel by channel."""
    groups = group_norm(x.shape[1]).num_groups
    parts = []
    for group in x.chunk(groups, dim=1):
        mean = group.mean(dim=(1, 2, 3), keepdim=True)
        variance = (group - mean).square().mean(dim=(1, 2, 3), keepdim=True)
        parts.append((group - mean) / (variance + 1e-5).sqrt())
    return torch.cat(parts, dim=1) * scale[:, None, None] + shift[:, None, None]


def twin(state, x, *, blocks):
    """ResNet by the book on three channels, from torchvision's names, in evaluation mode."""

    def norm(x, name):
        if f"{name}.running_mean" not in state:
            return normalise_groups(x, state[f"{name}.weight"], state[f"{name}.bias"])
        stats = (state[f"{name}.running_mean"], state[f"{name}.running_var"])
        return batch_norm(x, *stats, state[f"{name}.weight"], state[f"{name}.bias"])

    x = relu(norm(conv2d(x, state["conv1.weight"], stride=2, padding=3), "bn1"))
    x = max_pool2d(x, 3, stride=2, padding=1)
    for stage, count in enumerate(blocks, start=1):
        for block in range(count):
            name, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            branch = conv2d(x, state[f"{name}.conv1.weight"], stride=stride, padding=1)
            branch = conv2d(
                relu(norm(branch, f"{name}.bn1")), state[f"{name}.conv2.weight"], padding=1
            )
            branch = norm(branch, f"{name}.bn2")
            if f"{name}.downsample.0.weight" in state:
                shortcut = conv2d(x, state[f"{name}.downsample.0.weight"], stride=stride)
                x = norm(shortcut, f"{name}.downsample.1")
            x = relu(branch + x)
    return x.mean(dim=(-2, -1)) @ state["fc.weight"].T + state["fc.bias"]


@pytest.mark.parametrize("norm", [nn.BatchNorm2d, group_norm])
def test_it_is_the_network_of_the_book_on_three_equal_channels(norm):
    network = randomised(norm)
    state = dict(network.state_dict())
    generator = torch.Generator().manual_seed(1)
    colour = torch.randn(4, 3, 7, 7, generator=generator)
    state["conv1.weight"] = colour
    network.conv1.weight.data.copy_(colour.sum(dim=1, keepdim=True))
    x = torch.rand(2, 1, 37, 70, generator=generator)
    gray = ((x - network.mean) / 0.226).expand(-1, 3, -1, -1)
    expected = twin(state, gray, blocks=SMALL["blocks"])
    torch.testing.assert_close(network(x), expected, rtol=1e-4, atol=1e-4)


def test_resnet34_has_torchvisions_parameters():
    network = ResNet(1000)
    # Published: 21,797,672 with three channels.
    assert sum(p.numel() for p in network.parameters()) == 21_797_672 - 2 * 64 * 49
    names = set(network.state_dict())
    assert len(names - {"mean"}) == 218
    assert {"conv1.weight", "bn1.running_var", "bn1.num_batches_tracked", "fc.bias"} <= names
    assert {"layer1.2.bn2.weight", "layer3.5.conv2.weight", "layer4.0.downsample.1.bias"} <= names
    assert "layer1.0.downsample.0.weight" not in names
    assert network.layer4[0].conv1.weight.shape == (512, 256, 3, 3)


@pytest.mark.parametrize("norm", [nn.BatchNorm2d, group_norm])
def test_what_a_picture_gives_depends_on_it_alone_in_either_mode(norm):
    network, x = randomised(norm), torch.rand(5, 1, 32, 40)
    statistics = {k: v.clone() for k, v in network.state_dict().items() if "running" in k}
    training = network.train()(x)
    torch.testing.assert_close(network.eval()(x), training, rtol=0, atol=0)
    torch.testing.assert_close(network(x[2:3]), training[2:3])
    for name, value in statistics.items():
        assert torch.equal(network.state_dict()[name], value)


def test_random_weights_keep_the_scale_and_see_every_pixel():
    with ambient_seed(0, "scale"):
        network = ResNet(4)
    # The last block's branch has a scale of a quarter, as of all sixteen.
    assert network.layer4[2].bn2.weight.unique().tolist() == [0.25]
    bright = torch.zeros(64, 1, 32, 64)
    bright[torch.arange(64), 0, torch.arange(64) // 2, torch.arange(64)] = 1.0
    z = network(bright)
    assert z.isfinite().all() and z.abs().max() < 10
    black = network(torch.zeros(1, 1, 32, 64))
    torch.testing.assert_close(black, network.fc.bias[None])
    assert (z - black).abs().amax(dim=1).min() > 1e-5


def test_every_weight_learns():
    network = ResNet(3, **SMALL)
    network(torch.rand(2, 1, 32, 32)).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in network.parameters())


@pytest.mark.parametrize("size", [(32, 64), (100, 500), (33, 47)])
def test_any_size_of_picture(size):
    assert ResNet(2, **SMALL)(torch.rand(1, 1, *size)).shape == (1, 2)


@pytest.mark.parametrize("channels", [1, 3, 4, 6, 8, 64, 100, 512])
def test_groups_divide_the_channels(channels):
    norm = group_norm(channels)
    assert channels % norm.num_groups == 0 and norm.num_groups <= 32
    assert norm.num_groups == 1 or channels // norm.num_groups >= 4
