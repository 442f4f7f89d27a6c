"""The public names, listed: one more, one fewer or one renamed is a decision, which changes this list.

What is meant by one of them is written where it is defined; types that only functions make are in the reference.
"""

from __future__ import annotations

import pytest
from typer.main import get_command

import unmeasured as um
from unmeasured.cli.commands import app

SEARCHES = "ExactSearch LGES Knowledge check estimate_cost use_device"
DATA = "Sample Table as_sample datasets read read_matrix split_rows"
MODELS = "compare_models dimension fit fit_many invariance"
GRAPHS = "CPDAG DAG count_gnfm graphs metrics simulate"
ANSWERS = "Result confirm penalty_path publication stability write_report"
ERRORS = "DataError GraphError ModelError SearchStopped UnmeasuredError UnmeasuredWarning"
TOP = sorted(" ".join((SEARCHES, DATA, MODELS, GRAPHS, ANSWERS, ERRORS, "peers")).split())
PEERS = ["EGA", "FOFC", "FactorAnalysis", "GES", "GIN", "RLCD", "RankClusters", "TwoStage"]
COMMANDS = sorted(
    [
        *("check", "compare", "datasets", "demo", "diagnose", "discover", "effects", "export", "fit", "invariance"),
        *("penalty-path", "report", "scores", "serve", "simulate", "stability"),
    ]
)


def public(thing):
    return sorted(name for name in dir(thing) if not name.startswith("_"))


@pytest.mark.parametrize(("place", "names"), [(um, TOP), (um.peers, PEERS)], ids=["unmeasured", "peers"])
def test_the_public_names_are_these(place, names):
    assert sorted(place.__all__) == names
    assert public(place) == names
    assert all(getattr(place, name) is not None for name in names)


def test_the_surface_fits_on_one_screen():
    assert len(TOP) <= 40


def test_a_wrong_name_says_which_there_are():
    with pytest.raises(AttributeError, match="no attribute 'LINGAM'; it has EGA, FOFC"):
        um.peers.LINGAM  # noqa: B018
    for name in PEERS:
        assert not hasattr(um, name)
        assert f"``{name}``" in um.peers.__doc__


def test_the_commands_are_these():
    assert sorted(get_command(app).commands) == COMMANDS


def test_what_a_search_offers_is_this():
    fitting = {"fit", "fit_cov", "fit_transform", "transform", "make_sample", "check_options"}
    learned = {"result_", "runners_up_", "stopped_"}  # properties and defaults; others are there after fit
    interface = {"get_feature_names_out", "get_metadata_routing", "get_params", "set_output", "set_params"}
    shared = fitting | learned | interface | {"cor", "missing"}
    assert set(public(um.ExactSearch)) == shared
    assert set(public(um.LGES)) == shared | {"discover", "group_results_", "invariance_", "set_fit_request"}
