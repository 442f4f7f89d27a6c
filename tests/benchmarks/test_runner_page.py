"""Pictures and the page, made from records alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import unmeasured as um
from benchmarks import experiment, figures, page
from benchmarks.__main__ import main
from benchmarks.run_records import Circumstances, Outcome, Record, Task
from benchmarks.state import state_of
from benchmarks.tables import cells_of

ROOT = Path(__file__).parents[2]


def where(task: Task) -> Circumstances:
    code = state_of(task.constructor)
    return Circumstances("0.1.0", code, "3.11.7", "2.4.6", "Linux x86_64, 2 cores", 1, "2026-11-15")


def made_up(name: str, n_seeds: int = 1) -> list[Record]:
    """Records in which methods are a little worse the later they come, so that lines end close to one another."""
    asked = experiment.load(name).first_seeds(n_seeds)
    labels = [method.label for method in asked.methods]

    def outcome(task):
        place = labels.index(task.method)
        f1 = 0.9 - 0.01 * place + 0.03 * (task.n_samples == 1000)
        return Outcome(0.1 * task.n_observed * (place + 1), f1=f1, precision=f1, recall=f1, shd=place, shd_paper=place)

    return [Record(a.task, where(a.task), outcome(a.task)) for a in asked.assignments]


def write(folder: Path, name: str, n_seeds: int = 1) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.jsonl").write_text(
        "".join("\n".join(record.lines()) + "\n" for record in made_up(name, n_seeds))
    )


@pytest.mark.parametrize("name", ["table1", "scaling", "table5", "penalty"])
def test_no_label_of_a_picture_covers_another_or_is_cut_off(name):
    asked = experiment.load(name)
    figure = figures.PICTURES[name](cells_of(asked, made_up(name)), asked)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    whole = figure.get_tightbbox(renderer)
    for axes in figure.axes:
        labels = [text.get_window_extent(renderer) for text in axes.texts]
        ticks = [text.get_window_extent(renderer) for text in axes.get_xticklabels() if text.get_text()]
        for boxes in (labels, ticks):
            assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        assert all(box.y1 / figure.dpi <= whole.y1 + 0.01 for box in labels)
    left, right = (axes.get_tightbbox(renderer) for axes in figure.axes)
    assert not left.overlaps(right)


def test_a_picture_shows_the_means_of_the_records():
    asked = experiment.load("penalty")
    figure = figures.PICTURES["penalty"](cells_of(asked, made_up("penalty")), asked)
    f1, shd = (axes.lines[0] for axes in figure.axes)
    assert f1.get_xdata().tolist() == [0.25, 0.5, 1.0, 2.0, 4.0]
    assert f1.get_ydata() == pytest.approx([0.93, 0.92, 0.91, 0.90, 0.89])
    assert shd.get_ydata().tolist() == [0, 1, 2, 3, 4]


def test_pictures_repeat_to_the_byte_and_come_from_the_records_there_are(tmp_path):
    write(tmp_path / "records", "penalty")
    first = figures.draw_all(tmp_path / "records", tmp_path / "one")
    second = figures.draw_all(tmp_path / "records", tmp_path / "two")
    assert [path.name for path in first] == ["bench-penalty.svg", "bench-penalty.png"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_place_of_the_template_becomes_command_table_and_picture(tmp_path):
    write(tmp_path / "records", "penalty", n_seeds=2)
    figures.draw_all(tmp_path / "records", tmp_path / "images")
    text = page.filled("# Ours\n\n{{ penalty }}\n\n{{ table5 }}\n", tmp_path / "records", tmp_path / "images")
    assert "# Ours\n\n`python -m benchmarks penalty --seeds 2`\n\n### LGES by its penalty" in text
    assert "| penalty = 0.25 | **0.93 (0.00)** |" in text
    assert "![LGES by its penalty, the paper's setting, N = 1000](images/bench-penalty.svg)" in text
    assert "`python -m benchmarks table5`: no records yet." in text
    (tmp_path / "records" / "table5.jsonl").touch()  # stopped before the first run was done
    assert page.section("table5", tmp_path / "records", tmp_path) == "`python -m benchmarks table5`: no records yet."
    assert len(figures.draw_all(tmp_path / "records", tmp_path / "images")) == 2
    with pytest.raises(um.UnmeasuredError, match="has a place for 'penlty'; did you mean 'penalty'"):
        page.filled("{{ penlty }}", tmp_path, tmp_path)


def test_methods_without_records_are_named_and_not_shown(tmp_path):
    (tmp_path / "penalty.jsonl").write_text("\n".join(made_up("penalty")[0].lines()) + "\n")
    text = page.section("penalty", tmp_path, tmp_path)
    assert "`python -m benchmarks penalty --seeds 1 --method 'penalty = 0.25'`" in text
    assert "- Not run yet: penalty = 0.5; penalty = 1; penalty = 2; penalty = 4." in text
    assert "| penalty = 4 |" not in text


def test_the_page_is_what_the_records_say():
    """After new records or a new template: python -m benchmarks figures && python -m benchmarks docs."""
    template = (ROOT / "benchmarks" / "page.md").read_text()
    made = page.filled(template, ROOT / "benchmarks" / "records", ROOT / "docs" / "images")
    assert made == (ROOT / "docs" / "benchmarks.md").read_text()


def test_every_experiment_has_its_place_on_the_page():
    template = (ROOT / "benchmarks" / "page.md").read_text()
    assert all(f"{{{{ {name} }}}}" in template for name in experiment.available())


def test_the_commands_for_several_experiments_the_pictures_and_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "docs").mkdir()
    write(tmp_path / "benchmarks" / "records", "penalty")
    (tmp_path / "benchmarks" / "page.md").write_text("{{ penalty }}\n")
    code, out, _ = call("table2", "--table-only")
    assert code == 0
    assert out.splitlines()[::2] == [
        f"table2-{half}: no records yet; python -m benchmarks table2-{half} makes them."
        for half in ("uniform", "leaky-relu")
    ]
    code, out, _ = call("all", "--table-only", "--seeds", "1")
    assert code == 0
    assert "penalty = 0.25   0.93 (0.00) *" in out
    assert out.count("no records yet") == len(experiment.available()) - 1
    code, out, _ = call("figures")
    assert code == 0
    assert "docs/images/bench-penalty.png" in out
    assert call("docs")[0] == 0
    assert "images/bench-penalty.svg" in (tmp_path / "docs" / "benchmarks.md").read_text()
    code, _, err = call("penalty", "--seeds", "0", "--table-only")
    assert code == 2
    assert "Invalid value for '--seeds'" in err
