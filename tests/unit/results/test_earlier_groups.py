"""Latent groups and item partitions in files of version 0.2.0; ``written_by_0_2/partitions_script.txt`` made them."""

from __future__ import annotations

import json
from pathlib import Path

from unmeasured.graphs import from_json
from unmeasured.results.earlier_formats import with_present_keys
from unmeasured.results.result import Result
from unmeasured.validation.replicates.records import Records
from unmeasured.validation.replicates.result import Stability

FILES = Path(__file__).parent / "written_by_0_2"


def test_a_class_over_latent_groups_is_read_and_written_with_the_present_key():
    text = (FILES / "latent_groups.json").read_text()
    graph = from_json(text)
    assert json.loads(text)["groups"] == [["L1", "L2"], ["L3"]]
    assert graph.latent_groups == (("L1", "L2"), ("L3",))
    written = json.loads(graph.to_json())
    assert written["latent_groups"] == [["L1", "L2"], ["L3"]]
    assert "groups" not in written
    assert from_json(graph.to_json()) == graph


def test_replicates_belong_to_the_search_that_made_them(tmp_path):
    lines = (FILES / "latent_groups.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    stored = ("replicate", "groups", "between", "headline", "seconds", "failure", "others", "direct")
    about = {key: value for key, value in first.items() if key not in stored}
    about["options"] = with_present_keys(about["options"], "replicate.options")
    about["start"] = {"latent_groups": first["start"]["groups"], "between": first["start"]["between"]}
    path = tmp_path / "replicates.jsonl"
    path.write_bytes((FILES / "latent_groups.jsonl").read_bytes())
    kept = Records(path, about).done
    assert sorted(kept) == list(range(len(lines)))
    for line in map(json.loads, lines):
        assert kept[line["replicate"]].outline.to_record()["latent_groups"] == line["groups"]


def test_a_stability_is_read_and_written_with_the_present_keys():
    text = (FILES / "stability.json").read_text()
    stable = Stability.from_json(text)
    stored, written = json.loads(text), json.loads(stable.to_json())
    assert [one["latent_groups"] for one in written["replicates"]] == [one["groups"] for one in stored["replicates"]]
    assert '"groups"' not in stable.to_json()
    assert stable.latent_groups["found"].tolist() == [1.0, 1.0]


def test_item_partitions_are_read_and_written_with_the_present_keys():
    text = (FILES / "partitions.json").read_text()
    result = Result.from_json(text)
    assert result.selected_partition == 1
    assert [(one.n_latents, one.agreement, one.agreement_se) for one in result.stored_partitions] == [
        (3, 0.7, 0.04),
        (2, 0.95, 0.02),
    ]
    assert result.partitions[0].tolist() == ["L1.1", "L1.1", "L1.2", "L2", "L2", "L2"]
    stored, written = json.loads(text), json.loads(result.to_json())
    assert written["item_partitions"][1] == {
        "latents": stored["levels"][1]["latents"],
        "agreement": 0.95,
        "agreement_se": 0.02,
    }
    assert not {"levels", "headline"} & set(written)
    assert Result.from_json(result.to_json()).to_json() == result.to_json()


def test_replicates_keep_their_selected_partition():
    stored = json.loads((FILES / "stability.json").read_text())
    stable = Stability.from_json((FILES / "stability.json").read_text())
    assert [list(one.selected_partition) for one in stable.replicates] == [
        one["headline"] for one in stored["replicates"]
    ]
