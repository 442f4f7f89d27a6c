"""Every figure of the documentation that comes from records is what the records say, computed here once more."""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import unmeasured as um
from benchmarks import claims, experiment
from benchmarks.__main__ import main
from benchmarks.studies import keep_study, read_studies

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "benchmarks.md").read_text()
MEASURED = PAGE[PAGE.index("## In one table") : PAGE.index("\n## ", PAGE.index("## In one table") + 5)]
PLAIN = MEASURED.replace("†", "")  # marks are tested with the tables


def lines(name: str) -> list[dict]:
    """The runs of a file, each with what it shares; no code of the package is used."""
    shared, runs = {}, {}
    for line in (ROOT / "benchmarks" / "records" / f"{name}.jsonl").read_text().splitlines():
        told = json.loads(line)
        if "runs" in told:
            shared[told["runs"]] = told
        else:
            run = {**shared[told["of"]], **told}
            place = (run["method"], run["graph"], run["n_samples"], run["seed"], run.get("categories"))
            runs[(*place, run.get("missing"))] = run  # the last one counts
    return list(runs.values())


def short(value: float, digits: int = 2) -> str:
    text = f"{value:.{digits}f}"
    return text[1:] if text.startswith("0.") else text


def by_n(name: str, method: str, measure: str = "f1") -> dict[int, float]:
    found = defaultdict(list)
    for run in lines(name):
        if run["method"] == method and measure in run:
            found[run["n_samples"]].append(run[measure])
    return {n: statistics.fmean(found[n]) for n in sorted(found)}


@pytest.mark.parametrize(("path", "text"), list(claims.sections(ROOT)), ids=lambda value: getattr(value, "name", ""))
def test_sections_of_figures_are_what_templates_and_records_give(path, text):
    """After new records: python -m benchmarks figures && python -m benchmarks docs."""
    assert path.read_text() == text


def test_the_evidence_of_the_readme():
    text = " ".join((ROOT / "README.md").read_text().replace("†", "").split())
    ours = [run for run in lines("table1") if run["method"] == "LGES (bic)"]
    graphs, seeds = ({run[key] for run in ours} for key in ("graph", "seed"))
    assert (len(graphs), len(seeds)) == (20, 10)
    assert "20 graphs of the paper's kind (ten seeds, N = 100, 200, 500, 1000)" in text
    large = sorted((r for r in lines("scaling") if r["method"] == "LGES (bic)"), key=lambda r: r["graph"])
    for size, words in (
        (300, "300 observed variables in {} s on two cores (two graphs, F1 {})"),
        (1000, "1,000 in {} s (F1 {})"),
    ):
        here = [run for run in large if run["n_observed"] == size]
        assert len(here) == 2
        seconds = " and ".join(f"{r['seconds']:.2g}" if r["seconds"] < 99.5 else f"{r['seconds']:.0f}" for r in here)
        assert words.format(seconds, " and ".join(short(run["f1"]) for run in here)) in text
    fits = json.loads((ROOT / "tests" / "oracle" / "lavaan_fits.json").read_text())["models"]
    assert len(fits) == 10
    assert "equal those of lavaan for ten published models" in text
    assert f"F1 of all edges {' '.join(short(value) for value in by_n('table1', 'LGES (bic)').values())};" in text
    peer = by_n("table1", "rank-clusters")
    assert f"(rank-clusters) {short(peer[100])} and {short(peer[1000])} at N = 100 and 1000" in text
    others = {run["method"] for run in lines("table1")} - {"rank-clusters"}
    others = {method for method in others if not method.startswith("LGES")}
    assert max(by_n("table1", method).get(1000, 0.0) for method in others) <= peer[1000]


def test_the_questionnaires_of_the_readme():
    """The means of LGES and of other methods are those of the table, whose lines are the commands' output."""
    page = (ROOT / "docs" / "questionnaires.md").read_text().replace("†", "")
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in page.splitlines() if row.startswith("| ")]
    first = next(i for i, row in enumerate(rows) if row[1] == "p, N, scales")
    last = next(i for i, row in enumerate(rows) if row[0] == "mean")
    sets = rows[first + 1 : last]
    lead, best = (short(statistics.fmean(float(row[k]) for row in sets)) for k in (2, 3))
    assert rows[last][2:4] == [lead, best]
    text = " ".join((ROOT / "README.md").read_text().replace("†", "").split())
    number = {8: "eight", 9: "nine", 10: "ten"}[len(sets)]
    assert f"On {number} published ones the partition of the items agrees with the authors' scales to {lead}" in text
    heads = rows[first]
    means = {
        name: short(statistics.fmean(float(row[k]) for row in sets if row[k]))
        for name in ("EGA", "factor analysis", "number given")
        for k in [heads.index(name)]
    }
    assert [rows[last][heads.index(name)] for name in means] == list(means.values())
    others = f"network communities {means['EGA']}, factor analysis with parallel analysis {means['factor analysis']}"
    assert others in text
    assert others in " ".join(page.split())


@pytest.mark.parametrize("name", ["table1", "table2-uniform", "table2-leaky-relu", "realistic"])
def test_f1_by_sample_size(name):
    assert " ".join(short(value) for value in by_n(name, "LGES (bic)").values()) in PLAIN


@pytest.mark.parametrize(
    ("words", "method"),
    [
        ("`LGES()`", "LGES (bic)"), ("rank-clusters", "rank-clusters"), ("RLCD", "RLCD"), ("GIN", "GIN (released)"),
        ("two-stage", "two-stage"), ("FOFC", "FOFC"), ("the paper's rule", "LGES (delta)"),
    ],
)  # fmt: skip
def test_peers_on_table_1(words, method):
    means = by_n("table1", method)
    assert f"{words} {short(means[100])} and {short(means[1000])}" in PLAIN


def test_which_rows_the_peers_see_is_said():
    noises = defaultdict(set)
    for run in lines("table1"):
        noises[run["noise"]].add(run["method"])
    assert noises["uniform"] == {"GIN (released)", "GIN (mended)"}
    assert "the same rows, but for GIN, which gets rows with uniform noise" in MEASURED


@pytest.mark.parametrize(
    ("words", "method"),
    [
        ("GIN {}", "GIN (mended)"), ("RLCD {}", "RLCD"), ("with its defaults {}", "RLCD (defaults)"),
        ("the paper's rule {}", "LGES (delta)"), ("two-stage {}", "two-stage"), ("FOFC {}", "FOFC"),
        ("rank-clusters {}", "rank-clusters"),
    ],
)  # fmt: skip
def test_median_ratios_of_seconds(words, method):
    seconds = {(run["method"], run["graph"]): run["seconds"] for run in lines("runtime")}
    graphs = {graph for _, graph in seconds}
    ratio = statistics.median(seconds[method, graph] / seconds["LGES (bic)", graph] for graph in graphs)
    row = next(line for line in PLAIN.splitlines() if "`python -m benchmarks runtime`" in line)
    assert words.format(f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}") in row
    ours = statistics.median(seconds["LGES (bic)", graph] for graph in graphs)
    assert f"medians: `LGES()` {ours:.2g} s" in row


def test_sizes_of_the_graphs_of_runtime():
    sizes = {len(structure.dag.names) for structure in experiment.load("runtime").graphs.structures()}
    assert f"five graphs of {min(sizes)} to {max(sizes)} variables" in MEASURED
    assert f"of {min(sizes)} to {max(sizes)} variables" in experiment.load("runtime").title


def test_categories_and_missing_values():
    likert, missing = lines("likert"), lines("missing")

    def mean(runs, method, digits, **wanted):
        values = [r["f1"] for r in runs if r["method"] == method and all(r.get(k) == v for k, v in wanted.items())]
        return short(statistics.fmean(values), digits)

    for method, words in (
        ("LGES (polychoric)", "polychoric F1 {} on even and {}"),
        ("LGES (pearson)", "Pearson {} and {}"),
    ):
        assert words.format(*(mean(likert, method, 2, categories=kind) for kind in ("even", "skewed"))) in PLAIN
    assert f"uncut {mean(likert, 'LGES (pearson)', 2, categories=None)}" in PLAIN
    figures = (mean(missing, "LGES (ml)", 3, missing=part) for part in (None, 0.1, 0.25))
    assert "complete {}, 10% missing {}, 25% {}".format(*figures) in PLAIN


def test_seconds_and_f1_of_large_models():
    runs = [run for run in lines("scaling") if run["method"] == "LGES (bic)"]
    page = (ROOT / "docs" / "scaling.md").read_text().replace("†", "")
    rows: dict[str, list[str]] = {}
    for row in page.splitlines():
        if "|" in row:  # of several tables that begin alike it is the first
            rows.setdefault(row.split("|")[1].strip(), [c.strip() for c in row.split("|")[2:-1]])
    for size, seconds, f1 in zip(rows["observed"], rows["seconds"], rows["F1"], strict=True):
        here = sorted((r for r in runs if r["n_observed"] == int(size)), key=lambda r: r["graph"])
        assert [float(text) for text in seconds.split(", ")] == pytest.approx(
            [r["seconds"] for r in here], abs=0.51, rel=0.1
        )
        assert f1 == ", ".join(short(r["f1"]) for r in here)
    at = dict(zip(rows["observed"], rows["F1"], strict=True))
    assert f"F1 at 300 {at['300'].replace(', ', ' and ')}, at 1,000 {at['1000'].replace(', ', ' and ')}" in PLAIN


def test_bundled_data():
    found = {run["graph"]: run for run in lines("table3") if run["method"] == "LGES (bic)"}
    m, t = found["multitasking"], found["teacher_burnout"]
    assert f"multitasking RMSEA {short(m['rmsea'], 4)}, CFI {short(m['cfi'], 4)}, TLI {short(m['tli'], 4)}" in PLAIN
    assert f"teacher burnout BIC {t['bic']:.0f}, RMSEA {short(t['rmsea'], 4)}, CFI {short(t['cfi'], 3)}" in PLAIN


def test_knowledge_is_the_same_in_both_places():
    known = json.loads((ROOT / "benchmarks" / "records" / "studies.json").read_text())["studies"]["knowledge"][
        "figures"
    ]
    given, without = (
        [short(known[f"{which}_{key}"], 3) for key in ("f1", "latent_f1")] for which in ("given", "without")
    )
    assert "F1 {} over all edges and {} over edges between latents".format(*given) in PLAIN
    assert "(without knowledge {} and {})".format(*without) in PLAIN
    page = (ROOT / "docs" / "knowledge.md").read_text().replace("†", "")
    assert "| true groups given | {} | {} |".format(*given) in page
    assert "| without knowledge | {} | {} |".format(*without) in page


def test_what_must_be_said_is_said():
    assert "its graphs are not published, so ours are 20 others" in MEASURED
    for page in ("docs/benchmarks.md", "docs/search-notes.md"):
        words = " ".join((ROOT / page).read_text().split())
        assert re.search(r"240 runs of the tables", words)
        assert "not a blind test" in words


def test_studies_are_kept_and_foreign_files_are_not_touched(tmp_path, monkeypatch, capsys):
    path = tmp_path / "studies.json"
    keep_study(path, "population", "python -m benchmarks population", {"n_right": 3})
    keep_study(path, "batch", "python -m benchmarks batch", {"times_9": 2.0})
    assert [study.is_of_today for study in read_studies(path).values()] == [True, True]
    with pytest.raises(um.UnmeasuredError, match="n is no number"):
        keep_study(path, "batch", "", {"n": float("nan")})
    for content in (b'{"my":"thesis"}', b"[" * 200_000, b"", b"\xff\x00", b'{"studies":[1]}'):
        path.write_bytes(content)
        with pytest.raises(um.UnmeasuredError, match="is not a file of studies"):
            keep_study(path, "batch", "", {})
        assert path.read_bytes() == content
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "population", "--graphs", "1", "--keep"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0, capsys.readouterr()
    assert read_studies(tmp_path / "benchmarks" / "records" / "studies.json")["population"].figures["n_graphs"] == 1


def test_mistakes_in_templates_are_sentences(tmp_path):
    for template, words in (
        ('{{ series("table1", "LGES (bik)") }}', "has no method 'LGES"),
        ('{{ nothing("table1") }}', "cannot be filled"),
        ("{{ study('x') }}", "no figures of the study 'x'"),
        ('{% set k = study("knowledge") %}{{ k.foo }}', "has no figure 'foo'"),
    ):
        with pytest.raises(um.UnmeasuredError, match=words):
            claims.filled(template, ROOT / "benchmarks" / "records")
    with pytest.raises(um.UnmeasuredError, match="has no section"):
        claims.with_section("# A", "## B", "text")
