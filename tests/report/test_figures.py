import numpy as np
import pytest
from matplotlib import rcParams
from matplotlib.figure import Figure

from tampl.errors import InputError
from tampl.evaluate import Case, Cases, Curve
from tampl.report import figures, style

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


def make_curve(generator, frames, spread=True):
    mean = generator.random((frames, 3))
    return Curve(mean, np.full_like(mean, 0.05) if spread else None)


def make_cases(labels=("K=1", "K=4", "K=4"), frames=6, shape=(12, 12)):
    generator = np.random.default_rng(0)
    same = make_curve(generator, frames, spread=False)
    cases = tuple(
        Case(
            index=index,
            label=label,
            microstate=generator.integers(0, 3, shape, dtype=np.uint8),
            reference=make_curve(generator, frames),
            predictions={
                "tampl": make_curve(generator, frames),
                "mean_field": same,
                "pair": make_curve(generator, frames, spread=False),
            },
        )
        for index, label in enumerate(labels)
    )
    return Cases(0.5 * np.arange(frames), ("S", "I", "R"), cases, (0, 1))


def make_history(epochs=8):
    return [
        {
            "epoch": epoch,
            "losses": {
                "representation": {"total": 1.1 / epoch, "cur": 1 / epoch, "tr": 0.1 / epoch},
                "transition": {"total": 0.5 / epoch, "tr": 0.5 / epoch},
            },
            "latent": {"std_mean": 1.0, "std_min": 0.1 * epoch, "effective_rank": 3.0},
            "validation": 0.3 - 0.01 * epoch if epoch % 2 else None,
            "seconds": 1.0,
        }
        for epoch in range(1, epochs + 1)
    ]


def legend_texts(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_predictions_have_one_row_for_each_label():
    figure = figures.predictions(make_cases())
    assert len(figure.axes) == 2 * (1 + 3)
    assert [axis.get_title() for axis in figure.axes[:4]] == ["initial state", "S", "I", "R"]
    assert [figure.axes[n].get_ylabel() for n in (0, 4)] == ["K=1", "K=4"]
    assert legend_texts(figure) == ["Simulation", "TAMPL", "Mean field", "Pair approximation"]
    panel = figure.axes[1]
    assert len(panel.lines) == 4
    assert len(panel.collections) == 2


def test_predictions_of_chosen_labels():
    assert len(figures.predictions(make_cases(), labels=["K=4"]).axes) == 4
    with pytest.raises(InputError, match="K=7"):
        figures.predictions(make_cases(), labels=["K=7"])
    with pytest.raises(InputError, match="`labels`"):
        figures.predictions(make_cases(), labels=[])


def test_lattice_colours_follow_the_states():
    image = figures.predictions(make_cases()).axes[0].images[0]
    red, green, blue, _ = image.to_rgba(np.array([[1]]))[0, 0]
    assert red > 2 * max(green, blue)
    red, green, blue, _ = image.to_rgba(np.array([[2]]))[0, 0]
    assert blue > red
    assert len(set(image.to_rgba(np.array([[0]]))[0, 0][:3].round(1))) == 1


def test_vectors_are_drawn_as_lines_and_unknown_kinds_refused():
    figure = figures.predictions(make_cases(shape=(12,)), "vector")
    assert len(figure.axes[0].lines) == 1
    with pytest.raises(InputError, match="'lattice', 'vector'"):
        figures.predictions(make_cases(), "gas")


def test_twins_draw_what_is_the_same_for_both_once():
    figure = figures.twins(make_cases())
    assert len(figure.axes) == 2 + 3
    panel = next(axis for axis in figure.axes if axis.get_title() == "S")
    # Two simulations, two of TAMPL, two of the pair approximation, one mean field.
    assert len(panel.lines) == 7
    assert "Mean field (both)" in legend_texts(figure)
    assert sum(line.get_color() == style.MUTED for line in panel.lines) == 1


def test_training_curves_have_a_panel_for_each_stage_and_validation():
    figure = figures.training_curves(make_history())
    assert len(figure.axes) == 3
    assert [len(axis.lines) for axis in figure.axes] == [3, 1, 1]
    assert [axis.get_yscale() for axis in figure.axes] == ["log", "log", "linear"]
    assert list(figure.axes[2].lines[0].get_xdata()) == [1, 3, 5, 7]


def test_latent_scale():
    figure = figures.latent_scale(make_history())
    assert [len(axis.lines) for axis in figure.axes] == [2, 1]
    assert figure.axes[0].get_yscale() == "log"


@pytest.mark.parametrize(
    "history",
    [
        [],
        [{"epoch": 1, "losses": {}, "latent": None, "validation": None}],
        [{"epoch": 1, "losses": {"joint": {"total": float("nan")}}, "validation": float("nan")}],
        [{"epoch": 1, "losses": {"joint": {"total": 0.0}}, "latent": {"std_mean": 0.0}}],
        make_history(1),
    ],
)
def test_histories_with_gaps_can_be_drawn(history, tmp_path):
    figures.save_figure(figures.training_curves(history), tmp_path / "training")
    figures.save_figure(figures.latent_scale(history), tmp_path / "latent")


def test_figures_are_saved_twice_and_reproducibly(tmp_path):
    png, pdf = figures.save_figure(figures.predictions(make_cases()), tmp_path / "one.v2")
    assert (png.name, pdf.name) == ("one.v2.png", "one.v2.pdf")
    assert png.read_bytes().startswith(PNG_MAGIC)
    assert pdf.read_bytes().startswith(b"%PDF")
    again = figures.save_figure(figures.predictions(make_cases()), tmp_path / "two")
    assert png.read_bytes() == again[0].read_bytes()
    assert pdf.read_bytes() == again[1].read_bytes()


def test_labels_and_names_are_text_and_not_formulas():
    cases = make_cases()
    cases.cases[0].predictions[r"$\frac{$"] = cases.cases[0].reference
    assert figures.png_bytes(figures.predictions(cases)).startswith(PNG_MAGIC)
    figure = figures.predictions(make_cases(labels=(r"$\frac{", "$a$", "c")))
    assert figures.png_bytes(figure).startswith(PNG_MAGIC)
    figure = figures.twins(make_cases(labels=(r"$\frac{$", "$a$", "c")))
    assert figures.png_bytes(figure).startswith(PNG_MAGIC)


def test_the_schematic_is_a_vector_drawing(tmp_path):
    figure = figures.schematic()
    assert isinstance(figure, Figure)
    _, pdf = figures.save_figure(figure, tmp_path / "schematic")
    assert b"/Subtype /Image" not in pdf.read_bytes()


def test_global_settings_are_left_alone():
    before = dict(rcParams)
    figures.png_bytes(figures.twins(make_cases()))
    assert dict(rcParams) == before


def test_unknown_predictions_get_a_line_of_their_own():
    line = style.line_of("jld")
    assert line == style.line_of("jld")
    assert line not in (style.line_of("tampl"), style.line_of("reference"))
