"""Replicates on a real cluster of separate processes, one of which is killed: the result is that of one process."""

from __future__ import annotations

import os
import signal
import threading
import time

import joblib
import pytest

import unmeasured as um

distributed = pytest.importorskip("distributed", reason="Dask is not installed; pip install 'unmeasured[cluster]'")

N = 10


@pytest.mark.filterwarnings("ignore")  # Dask and Tornado warn of their own affairs, the more so when a worker dies
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
