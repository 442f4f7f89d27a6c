"""Starting is quick: nothing is loaded that was not asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import unmeasured as um

HEAVY = (
    "numpy", "pandas", "scipy", "numba", "llvmlite", "sklearn", "matplotlib", "networkx", "joblib", "jinja2", "tqdm",
    "threadpoolctl", "narwhals", "polars", "pyarrow", "pyreadstat", "openpyxl", "docx", "dask", "distributed", "torch",
    "starlette", "uvicorn", "causallearn", "semopy", "statsmodels", "igraph",
)  # fmt: skip
# What a search of a matrix has no use for.
UNUSED = (
    "matplotlib", "jinja2", "polars", "pyreadstat", "openpyxl", "docx", "dask", "distributed",
    "torch", "starlette", "uvicorn", "causallearn", "semopy", "statsmodels", "igraph",
)  # fmt: skip


def loaded_by(code):
    """The heavy libraries that are loaded after some code."""
    check = f"import sys\n{code}\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()


def test_the_package_loads_nothing():
    assert loaded_by("import unmeasured") == []


@pytest.mark.parametrize("arguments", [["--help"], ["discover", "--help"], ["stability", "--help"]])
def test_help_loads_nothing(arguments):
    code = (
        f"sys.argv = ['unmeasured', *{arguments!r}]\nfrom unmeasured.cli.commands import main\n"
        "try:\n    main()\nexcept SystemExit as leaving:\n    assert not leaving.code"
    )
    assert loaded_by(code) == []


def test_the_search_loads_no_pictures():
    assert not set(UNUSED) & set(loaded_by("import unmeasured as um; um.LGES, um.Result, um.fit, um.read"))


def test_compiling_is_announced_only_where_nothing_is_on_disk(caplog, monkeypatch):
    from unmeasured.kernels import batch
    from unmeasured.models import solve
    from unmeasured.search.warm import are_on_disk, compile_kernels

    compile_kernels()
    assert are_on_disk()
    same, other = batch._build_score(batch._version()), batch._build_score(batch._version() + 1)
    for function, words in [(same, []), (other, ["compiling its numeric kernels"])]:
        caplog.clear()
        monkeypatch.setattr(solve, "_ready", False)
        monkeypatch.setattr(batch, "score_batch", function)
        with solve.compilation_announced():
            pass
        assert [record.getMessage()[12:41] for record in caplog.records] == words


def test_every_public_name_is_there_and_listed():
    for name in um.__all__:
        assert getattr(um, name) is not None
    assert dir(um) == sorted({"__version__", *um.__all__})
    with pytest.raises(AttributeError, match="no attribute 'LGSE'"):
        um.LGSE  # noqa: B018
