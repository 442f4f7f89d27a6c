"""What users install: the content of the wheel, versions that agree, documented extras, constraints that hold."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import unmeasured as um

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling", reason="hatchling, which builds the wheel, is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_has_what_users_need_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    needed = (
        "__init__.py",
        "py.typed",
        "cli/commands.py",
        "output/report/page/page.html",
        "app/server.py",
        "output/publish/word.py",
    )
    for name in needed:
        assert f"unmeasured/{name}" in names
    assert any(name.startswith("unmeasured/data/") and "multitasking" in name for name in names)
    for name in names:
        assert not re.search(r"bench|record[^s]|\.jsonl$|^tests|test_|^docs", name.replace("replicates/records", "")), (
            name
        )
    assert wheel.stat().st_size < 1_100_000  # of which cytoscape.js 137,000; records and tests would be megabytes


def test_without_the_benchmarks_nothing_is_missing(wheel, tmp_path):
    """Every module of the wheel can be imported from the wheel alone, but for those that need an extra."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        "import importlib, pkgutil, unmeasured\n"
        f"assert unmeasured.__file__.startswith({str(tmp_path)!r})\n"
        "for module in pkgutil.walk_packages(unmeasured.__path__, 'unmeasured.'):\n"
        "    if not module.name.endswith('__main__'):\n"
        "        importlib.import_module(module.name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(tmp_path), "PATH": ""}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_versions_agree():
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), flags=re.M)
    newest = re.search(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)  # after what is not released
    assert um.__version__ == PROJECT["version"] == cited[1] == newest[1]


def test_every_extra_is_documented_with_what_it_brings():
    page = (ROOT / "docs" / "install.md").read_text()
    rows = {row[1]: row[0] for row in re.finditer(r"^\| `(\w+)` \|.*$", page, flags=re.M)}
    extras = PROJECT["optional-dependencies"]
    assert set(rows) == set(extras)
    for extra, needs in extras.items():
        for need in needs if extra != "dev" else []:
            assert Requirement(need).name in rows[extra], (extra, need)


def test_the_constraints_cover_every_dependency():
    pinned: dict[str, list[Version]] = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            need = Requirement(line)
            (only,) = need.specifier
            pinned.setdefault(need.name, []).append(Version(only.version))
    extras = PROJECT["optional-dependencies"]
    for need in map(Requirement, (*PROJECT["dependencies"], *extras["io"], *extras["publish"], *extras["app"])):
        assert need.name in pinned, need
        assert all(version in need.specifier for version in pinned[need.name]), need
