"""Work on a real cluster of separate processes: the results are those of one process, also when a worker is killed."""

from __future__ import annotations

import os
import signal
import threading
import time

import joblib
import numpy as np
import pytest

import unmeasured as um
from benchmarks import experiment, runner
from benchmarks.run_records import open_records
from unmeasured.models import solve

distributed = pytest.importorskip("distributed", reason="Dask is not installed; pip install 'unmeasured[cluster]'")

N = 10
# Dask and Tornado warn of their own affairs, the more so when a worker dies.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A client of two worker processes."""
    folder = str(tmp_path_factory.mktemp("dask"))
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=folder
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_batches_of_candidates_go_to_the_cluster(cluster, monkeypatch) -> None:
    data = um.datasets.load("multitasking")
    alone = um.LGES().fit_cov(data.frame(), data.n_samples)

    def refused(*_):
        raise AssertionError("a batch stayed here")

    monkeypatch.setattr(solve, "ThreadPoolExecutor", refused)
    with joblib.parallel_config(backend="dask"):
        spread = um.LGES(n_jobs=-1, time_limit=120).fit_cov(data.frame(), data.n_samples)
    assert spread.graph_ == alone.graph_
    np.testing.assert_allclose(spread.result_.fit.estimates, alone.result_.fit.estimates, rtol=1e-9)


def test_runs_of_an_experiment_go_to_the_cluster(cluster, tmp_path) -> None:
    small = experiment.load("table4").quickened().restricted(["LGES (delta)"]).first_seeds(1)
    assert len(small.assignments) >= 2
    alone, spread = tmp_path / "alone.jsonl", tmp_path / "spread.jsonl"
    runner.run(small, alone, progress=False)
    with joblib.parallel_config(backend="dask"):
        runner.run(small, spread, n_jobs=-1, progress=False)

    def figures(path):
        return {r.task.key: (r.outcome.f1, r.outcome.shd, r.outcome.score_found) for r in open_records(path)}

    here, there = figures(alone), figures(spread)
    assert here.keys() == there.keys()
    # Arrays lie elsewhere in memory, so that sums may differ in their last bit.
    np.testing.assert_allclose([there[key] for key in here], list(here.values()), rtol=1e-12)


def test_a_killed_worker_changes_nothing(tmp_path) -> None:
    data = um.datasets.load("multitasking")
    search = um.LGES().fit_cov(data.frame(), data.n_samples)
    alone = um.stability(search, N)
    path = tmp_path / "records.jsonl"
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        victims = list(client.run(os.getpid).values())
        assert os.getpid() not in victims
        assert len(set(victims)) == 2
        killed: list[int] = []

        def kill_one_in_the_middle() -> None:
            while not path.exists() or path.read_text().count("\n") < 2:
                time.sleep(0.01)
            killed.append(path.read_text().count("\n"))
            os.kill(victims[0], signal.SIGKILL)

        killer = threading.Thread(target=kill_one_in_the_middle)
        killer.start()
        with joblib.parallel_config(backend="dask"):
            spread = um.stability(search, N, records=path)
        killer.join()
    assert killed[0] < N  # it died while there was work left
    assert [o.to_record() for o in spread.outlines] == [o.to_record() for o in alone.outlines]
    assert sorted(replicate.index for replicate in spread.replicates) == list(range(N))
