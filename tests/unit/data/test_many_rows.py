"""Rows read once, in blocks: the moments are those of all rows at once, whoever counts them and however divided."""

from __future__ import annotations

import os
import signal
import threading
import time

import joblib
import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.cli.commands import main
from unmeasured.data import tables
from unmeasured.data.moments import tally
from unmeasured.data.rows import Rows

pytest.importorskip("pyarrow", reason="pyarrow is not installed; pip install 'unmeasured[io]'")


def items(n, columns=6, *, seed=0, missing=0.05, categories=(-1.0, 0.2, 1.0)):
    """Answers that one latent causes, some of them missing."""
    rng = np.random.default_rng(seed)
    values = np.digitize(rng.normal(size=(n, 1)) + rng.normal(size=(n, columns)), categories) + 1.0
    values[rng.random(values.shape) < missing] = np.nan
    return pd.DataFrame(values, columns=[f"q{j + 1}" for j in range(columns)])


@pytest.fixture
def folder(tmp_path):
    """A folder of Parquet files, and all of its rows."""
    rows = items(3000)
    rows.iloc[5] = np.nan
    inner = tmp_path / "answers" / "second"
    inner.mkdir(parents=True)
    (tmp_path / "answers" / "_metadata.parquet").write_text("not a table")
    rows[:1000].to_parquet(tmp_path / "answers" / "a.parquet", row_group_size=300)
    rows[1000:].to_parquet(inner / "b.parquet", row_group_size=700)
    return tmp_path / "answers", rows


def assert_same(found, expected):
    np.testing.assert_allclose(found.cov, expected.cov, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=0, atol=1e-12)
    assert found.n == pytest.approx(expected.n, rel=1e-12)
    assert found.names == expected.names
    assert found.kinds == expected.kinds
    assert (found.counts == expected.counts).all()
    assert found.n_rows == expected.n_rows
    assert found.share_missing == pytest.approx(expected.share_missing)


@pytest.mark.parametrize(
    "options",
    [
        {"cor": "auto"},
        {"cor": "polychoric", "missing": "listwise"},
        {"cor": "pearson", "missing": "pairwise"},
        {"cor": "pearson", "missing": "listwise"},
    ],
)
def test_a_folder_gives_the_moments_of_its_rows(folder, options, monkeypatch):
    monkeypatch.setattr(tables, "_ROWS", 256)
    monkeypatch.setattr(tally, "BLOCK", 100)
    path, rows = folder
    table = um.read(path)
    assert isinstance(table, um.Table)
    assert (table.n_rows, table.columns) == (3000, list(rows.columns))
    found, expected = um.as_sample(table, **options), um.as_sample(rows, **options)
    assert_same(found, expected)
    assert found.remarks == expected.remarks
    np.testing.assert_array_equal(found.rows, expected.rows)
    if options == {"cor": "auto"}:
        assert um.LGES(**options).fit(table).graph_ == um.LGES(**options).fit(rows).graph_


def test_columns_are_chosen_and_prepared_while_reading(folder):
    from unmeasured.data.prepare import prepared

    path, rows = folder
    how = {"exclude": ["q6"], "na": [2], "reverse": ["q1"]}
    found, expected = prepared(um.read(path), **how), prepared(rows, **how)
    assert found.reversed_items == expected.reversed_items
    pd.testing.assert_frame_equal(found.frame.read(), expected.frame)
    with pytest.raises(um.DataError, match="no column 'q7' in this table"):
        um.read(path, columns=["q7"])
    assert list(um.read(path, columns=["q2", "q1"], blocks=False).columns) == ["q2", "q1"]


def test_continuous_values_and_those_that_become_so(monkeypatch):
    """A column that has few values in the first blocks and many later on: sums take the place of the tables."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(4000, 1)) + rng.normal(size=(4000, 5)) + 1e3
    values[:1500] = np.round(values[:1500])
    frame = pd.DataFrame(values, columns=list("abcde"))
    expected = um.as_sample(frame)
    monkeypatch.setattr(tables, "LARGE", 1000)
    monkeypatch.setattr(tally, "BLOCK", 200)
    found = um.as_sample(frame)
    np.testing.assert_allclose(found.cov, expected.cov, rtol=1e-10)
    assert found.n == 4000
    assert any("read once, in blocks, and not kept" in remark for remark in found.remarks)
    assert found.rows is None
    with pytest.raises(um.DataError, match="has no rows"):
        _ = found.frame
    # From parts, whose sums are around different centres and whose categories came in another order.
    parts = []
    for part in (values[:1400], values[1400:1600], values[1600:], values[:0]):
        counted = tally.Tally(tuple("abcde"))
        counted.add(Rows(tuple("abcde"), part, (False,) * 5))
        parts.append(counted)
    together = tally.merged(parts)
    np.testing.assert_allclose(together.sums.cross / 4000, expected.cov, rtol=1e-9)
    skewness = ((values - values.mean(axis=0)) ** 3).mean(axis=0) / values.std(axis=0) ** 3
    np.testing.assert_allclose(together.sums.skewness, skewness, atol=1e-8)


def test_what_needs_all_rows_reads_them_or_says_so(folder, monkeypatch):
    path, rows = folder
    mixed = rows.assign(z=np.random.default_rng(0).normal(size=len(rows))).fillna(3.0)
    expected = um.as_sample(mixed, cor="auto")
    mixed.to_parquet(path / "mixed.parquet")
    table = um.read(path / "mixed.parquet", blocks=True)
    assert_same(um.as_sample(table, cor="auto"), expected)
    monkeypatch.setattr(tables, "_MOST_IN_MEMORY", 10)
    for options, words in [
        ({"cor": "auto"}, "polyserial"),
        ({"cor": "spearman-normal"}, "Ranks"),
        ({"covariates": ["z"]}, "Covariates"),
    ]:
        with pytest.raises(um.DataError, match=f"{words}.*too many of them to be read at once"):
            um.as_sample(table, **options)
    with pytest.raises(um.DataError, match="missing='pairwise'"):
        um.as_sample(um.read(path / "a.parquet", blocks=True))
    with pytest.raises(um.DataError, match="Take fewer columns"):
        table.read()


def test_faults_are_found_as_in_rows(folder, monkeypatch):
    path, rows = folder
    expected = um.as_sample(rows.fillna(9.0), cor="auto").remarks
    monkeypatch.setattr(tables, "LARGE", 100)
    with pytest.raises(um.DataError, match="'q1' and 'q7' are identical"):
        um.as_sample(rows.assign(q7=rows["q1"]))
    with pytest.raises(um.DataError, match="hold no value at all"):
        um.as_sample(rows.assign(q7=np.nan))
    with pytest.raises(um.DataError, match="Constant variables"):
        um.as_sample(rows.assign(q7=3.0))
    with pytest.raises(um.DataError, match="'q7' hold text"):
        um.as_sample(rows.assign(q7="a"))
    with pytest.raises(um.DataError, match="'id' has more than 20 different values"):
        um.as_sample(rows.assign(id=range(len(rows))), cor="polychoric")
    complete = rows.fillna(2.0)
    numbered = um.as_sample(complete.assign(number=np.arange(len(rows)) + 7.0), cor="pearson").remarks
    assert any("'number': every value is a different whole number" in remark for remark in numbered)
    assert any("The value 9 looks like a code" in remark for remark in expected)
    assert um.as_sample(rows.fillna(9.0), cor="auto").remarks == expected
    assert um.check(um.read(path)).column_errors == ()
    rows.rename(columns={"q1": "other"}).to_parquet(path / "z.parquet")
    with pytest.raises(um.DataError, match=r"'z.parquet' has other columns than 'a.parquet': 'other', 'q1'"):
        um.read(path)


def test_a_folder_without_tables_and_broken_files_are_sentences(tmp_path):
    with pytest.raises(um.DataError, match="no Parquet files"):
        um.read(tmp_path)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(um.DataError, match=r"'broken.parquet' could not be read"):
        um.read(tmp_path)
    with pytest.raises(um.DataError, match="Only Parquet and text files"):
        um.read(str(items(30).pipe(lambda x: x.to_stata(tmp_path / "a.dta")) or tmp_path / "a.dta"), blocks=True)


@pytest.mark.parametrize(
    ("text", "options"),
    [("a;b;c\n1,5;2;3\n2;3;.\n;1;2\n4;4;1\n", {}), ("1 2\n2 3\n4 4\n", {"header": False}), ("a\tb\n1\tx\n2\ty\n", {})],
)
def test_text_in_blocks_is_read_as_ever(tmp_path, text, options):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    table = um.read(path, blocks=True, **options)
    pd.testing.assert_frame_equal(table.read(), um.read(path, **options), check_dtype=False)


def test_text_that_blocks_would_misread_is_refused(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2,3\n2,5,6\n")  # row names as R writes them
    with pytest.raises(um.DataError, match="cannot be read in blocks"):
        um.read(path, blocks=True)
    path.write_text("a b\n" + "1 2\n" * 200 + "1 2 3\n")
    with pytest.raises(um.DataError, match="Expected 2 fields"):
        um.read(path, blocks=True, columns=["a"]).read()
    path.write_bytes("a,b\n1,ä\n".encode("latin-1"))
    with pytest.raises(um.DataError, match="not text in utf-8"):
        um.read(path, blocks=True)


def test_the_command_reads_folders(folder, capsys, monkeypatch, tmp_path):
    path, _ = folder
    monkeypatch.setattr("sys.argv", ["unmeasured", "discover", str(path), "--out", str(tmp_path / "out"), "--quiet"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0, capsys.readouterr()
    assert "3000" in (tmp_path / "out" / "result.json").read_text() or (tmp_path / "out" / "report.html").exists()


def test_tables_of_other_libraries():
    pa = pytest.importorskip("pyarrow")
    frame = items(400, missing=0.1).astype("Int64")
    grades = pd.Categorical(
        np.where(frame["q1"].fillna(0) > 2, "high", "low"), categories=["low", "high"], ordered=True
    )
    rows = frame.assign(grade=grades)
    expected = um.as_sample(rows, cor="auto")
    assert_same(um.as_sample(pa.Table.from_pandas(rows), cor="auto"), expected)
    pl = pytest.importorskip("polars", reason="polars is not installed")
    columns = {name: pl.Series([None if pd.isna(v) else v for v in frame[name]], dtype=pl.Int64) for name in frame}
    columns["grade"] = pl.Series(list(grades), dtype=pl.Enum(["low", "high"]))
    other = pl.DataFrame(columns)
    assert_same(um.as_sample(other, cor="auto"), expected)
    assert_same(um.as_sample(other.lazy(), cor="auto"), expected)
    search = um.LGES().fit(other.drop("grade"))
    assert list(search.feature_names_in_) == list(frame.columns)
    np.testing.assert_allclose(search.transform(other.drop("grade")), search.transform(frame))
    with pytest.raises(um.DataError, match="'word' hold text"):
        um.as_sample(other.with_columns(word=pl.lit("a")))


# Dask and Tornado warn of their own affairs, the more so when a worker dies.
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_counts_the_same_when_a_worker_is_killed(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed; pip install 'unmeasured[cluster]'")
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    rows = items(24_000)
    for k in range(24):
        rows[1000 * k : 1000 * (k + 1)].to_parquet(tmp_path / f"{k:02}.parquet")
    table = um.read(tmp_path)
    alone = um.as_sample(rows, cor="auto")
    counting = tables._Counting

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        spread = dd.from_pandas(rows, npartitions=5)
        assert_same(um.as_sample(spread, cor="auto"), alone)
        assert um.LGES(cor="auto").fit(spread).graph_ == um.LGES().fit(alone).graph_
        with pytest.raises(um.DataError, match=r"Ranks.*X.compute\(\)"):
            um.as_sample(spread, cor="spearman-normal")
        victims = list(client.run(os.getpid).values())
        begun = tmp_path / "begun"

        def slowly(*given):
            """Counting that takes its time, so that there is a middle to be killed in; workers get it by value."""
            count, path = counting(*given), str(begun)

            def counted(item):
                open(path, "w").close()
                time.sleep(0.05)
                return count(item)

            return counted

        monkeypatch.setattr(tables, "_Counting", slowly)

        def kill_one_in_the_middle():
            until = time.monotonic() + 60
            while not begun.exists() and time.monotonic() < until:
                time.sleep(0.01)
            time.sleep(0.2)
            os.kill(victims[0], signal.SIGKILL)

        killer = threading.Thread(target=kill_one_in_the_middle, daemon=True)
        killer.start()
        with joblib.parallel_config(backend="dask"):
            spread = um.as_sample(table, cor="auto")
        killer.join()
        assert victims[0] not in client.run(os.getpid).values()
    assert_same(spread, alone)
    assert spread.remarks[:-1] == alone.remarks  # the last: rows were not kept


def test_the_sample_says_what_it_does_not_keep(monkeypatch):
    """Beyond so many values the rows are not kept: replicates come from the moments, margins are kept for scores."""
    rows = items(2000)
    monkeypatch.setattr(tables, "LARGE", 100)
    monkeypatch.setattr(tally, "KEPT_VALUES", 100)
    sample = um.as_sample(rows, cor="auto")
    assert sample.rows is None
    assert "not kept" in sample.remarks[-1]
    search = um.LGES().fit(sample)
    scores = search.result_.fit.scores(rows[:10])
    monkeypatch.undo()
    kept = um.LGES(cor="auto").fit(rows)
    np.testing.assert_allclose(scores, kept.result_.fit.scores(rows[:10]), atol=1e-6)
    with pytest.raises(um.DataError, match="no rows to take subsamples of"):
        um.stability(search, 2, method="subsample")


def test_the_answer_to_very_many_ordinal_rows_is_shown_without_making_them(monkeypatch, tmp_path):
    """Packed rows take a byte a value; as numbers they take eight, and their scores one for every pair of items."""
    rng = np.random.default_rng(3)
    latent = np.repeat(rng.normal(size=(4000, 2)), 4, axis=1)
    values = np.digitize(latent + 0.8 * rng.normal(size=(4000, 8)), [-1.0, 0.0, 1.0])
    frame = pd.DataFrame(values, columns=[f"q{k}" for k in range(8)])
    frame.to_parquet(tmp_path / "all.parquet")
    of_all = um.LGES().fit(frame).result_.reported
    monkeypatch.setattr(tables, "_ROWS", 500)
    monkeypatch.setattr("unmeasured.models.estimators._MOST_ROWS", 2000)
    search = um.LGES().fit(um.read(tmp_path / "all.parquet", blocks=True))
    assert search.sample_.has_rows

    def refuse(_):
        raise AssertionError("all rows were made")

    monkeypatch.setattr(type(search.sample_), "rows", property(refuse))
    assert "2 latent variables behind 8" in str(search.result_.summary())
    um.write_report(search, tmp_path / "report")
    some = search.result_.reported
    assert "from 2000 of the rows" in some.robust.reason
    assert some.chi2 == pytest.approx(of_all.chi2)
    assert some.chi2_scaled == pytest.approx(of_all.chi2_scaled, rel=0.1)
    assert some.rmsea_robust == pytest.approx(of_all.rmsea_robust, abs=0.01)
    ratio = some.robust.acov.diagonal() / of_all.robust.acov.diagonal()
    assert ratio == pytest.approx(1.0, abs=0.2)


def test_statistics_of_very_many_continuous_rows_come_from_some_of_them(monkeypatch):
    rng = np.random.default_rng(4)
    latent = np.repeat(rng.normal(size=(6000, 2)), 4, axis=1)
    z = (latent + 0.8 * rng.normal(size=(6000, 8))) * np.sqrt(8 / rng.chisquare(8, size=(6000, 1)))
    search = um.LGES(cor="pearson").fit(z)
    of_all = search.result_.reported
    assert of_all.scaling_factor > 1.2
    monkeypatch.setattr("unmeasured.models.estimators._MOST_ROWS", 3000)
    some = um.LGES(cor="pearson").fit(z).result_.reported
    assert "from 3000 of the rows" in some.robust.reason
    assert some.chi2_scaled == pytest.approx(of_all.chi2_scaled, rel=0.15)
    assert some.cfi_robust == pytest.approx(of_all.cfi_robust, abs=0.005)
    ratio = some.robust.acov.diagonal() / of_all.robust.acov.diagonal()
    assert np.median(ratio) == pytest.approx(1.0, abs=0.2)
