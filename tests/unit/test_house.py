"""The rules of the code base that a machine can check: import directions, docstrings, the README's code."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import io
import itertools
import re
from pathlib import Path

import networkx as nx
import pytest
import site_pages

import unmeasured as um

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "unmeasured"
# The floors of the house, from the ground up: a floor imports from those before it only, and nothing is excepted.
FLOORS = [
    "errors",
    "remarks",
    "arrays",
    "apa",
    "parallel",
    "files",
    "constraints",
    "graphs",
    "data",
    "kernels",
    "models",
    "simulate",
    "metrics",
    "knowledge",
    "search",
    "diagram",
    "results",
    "estimators",
    "peers",
    "validation",
    "output",
    "app",
    "cli",
    "__main__",
]
# What uses the package as its users do may name it whole; below, a name of the whole could be one of any floor.
TOP = ("app", "cli", "__main__")


def floor_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def run_time_nodes(tree):
    """All parts of a module but what only type checkers read; functions included, so lazy imports are seen too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from run_time_nodes(node)


def imported_names(path):
    """Every name of ours that a file imports, wherever in it, as ``unmeasured.floor.module.name``."""
    for node in run_time_nodes(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            names = [ast.unparse(node.args[0]).strip("'f")]
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (name for name in names if name.split(".")[0] == "unmeasured")


def test_every_part_of_the_package_has_a_floor():
    parts = {floor_of(path) for path in SOURCE.rglob("*.py")} - {"__init__"}
    assert parts == set(FLOORS)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_come_from_floors_below(path):
    here = floor_of(path)
    if here == "__init__":
        return
    for name in imported_names(path):
        other = name.split(".")[1] if "." in name else ""
        if other in FLOORS:
            assert FLOORS.index(other) <= FLOORS.index(here), f"{path.name} imports {name}"
        else:
            assert here in TOP or other == "__version__", f"{path.name} imports {name}"


# Modules that still import one another: a fit offers what builds on it as methods, commands register themselves.
CYCLES = {
    frozenset(f"unmeasured.models.{name}" for name in ("estimate", "estimators", "fit", "multigroup")),
    frozenset(f"unmeasured.cli.{name}" for name in ("commands", "after", "invariance", "serve", "trust")),
}


def module_graph():
    modules = {}
    for path in SOURCE.rglob("*.py"):
        parts = ("unmeasured", *path.relative_to(SOURCE).with_suffix("").parts)
        modules[".".join(parts).removesuffix(".__init__")] = path
    graph = nx.DiGraph()
    for module, path in modules.items():
        for name in imported_names(path):
            target = name if name in modules else name.rpartition(".")[0]
            if target in modules and target != module:
                graph.add_edge(module, target)
    return graph


def test_no_module_imports_itself_by_way_of_others():
    graph = module_graph()
    assert graph.has_edge("unmeasured.graphs.cpdag", "unmeasured.graphs.formats.exports")
    cycles = {frozenset(cycle) for cycle in nx.strongly_connected_components(graph) if len(cycle) > 1}
    assert cycles <= CYCLES


def test_every_public_name_is_documented():
    undocumented = []
    things = {name: getattr(um, name) for name in um.__all__}
    things |= {f"peers.{name}": getattr(um.peers, name) for name in um.peers.__all__}
    for place in (place for places in site_pages.RETURNED.values() for place in places):
        module, _, kind = place.rpartition(".")
        things[place] = getattr(importlib.import_module(f"unmeasured.{module}"), kind)
    for name, thing in things.items():
        if not inspect.getdoc(thing):
            undocumented.append(name)
        if inspect.isclass(thing):
            for attribute, value in vars(thing).items():
                is_member = callable(value) or isinstance(value, property)
                if not attribute.startswith("_") and is_member and not inspect.getdoc(getattr(thing, attribute)):
                    undocumented.append(f"{name}.{attribute}")
    assert undocumented == []


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/answer.md",
        "docs/report.md",
        "docs/peers.md",
        "docs/knowledge.md",
        "docs/stability.md",
        "docs/scaling.md",
        "docs/robust.md",
        "docs/groups.md",
        "docs/covariates.md",
        "docs/after.md",
        "docs/hierarchy.md",
        "docs/questionnaires.md",
        "docs/concepts.md",
        "docs/coming-from.md",
    ],
)
def test_the_pages_run_and_print_what_they_say(page):
    blocks = re.findall(r"```(python|text)\n(.*?)```", (ROOT / page).read_text(), flags=re.S)
    scope: dict[str, object] = {}
    printed = None
    for kind, code in blocks:
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(code, page, "exec"), scope)
            printed = out.getvalue()
        elif printed is not None:
            assert printed.strip() == code.strip()
            printed = None


def test_the_readme_has_its_two_commands():
    text = (ROOT / "README.md").read_text()
    assert ".venv/bin/pip install" in text.split("<!-- run command -->")[1].split("```")[1]
    assert "pytest" in text.split("<!-- test command -->")[1].split("```")[1]


# The map at the beginning of CONTRIBUTING.md ------------------------------------------------------------------

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
PICTURES = re.findall(r"```text\n(.*?)```", CONTRIBUTING.split("## Where do I change")[0], flags=re.S)
BESIDE = ("benchmarks", "docs", "examples", "tests", "tools")


def place(path):
    """Where a path of the map is: below src/unmeasured, or beside src; a name to be chosen counts as its folder."""
    path = path.rpartition("/")[0] if "NAME" in path else path
    return (ROOT if path.split("/")[0] in BESIDE else SOURCE) / path


def test_the_picture_of_the_floors_is_the_list_and_the_directories():
    drawn = []
    for line in reversed(PICTURES[0].splitlines()):
        names, _, about = line.strip().partition("  ")
        for name in names.split():
            assert (SOURCE / name).is_dir() if name.endswith("/") else (SOURCE / name).is_file(), name
            drawn.append(name.rstrip("/").removesuffix(".py"))
        for inside in re.findall(r"\b(\w+)/", about):
            assert (SOURCE / names / inside).is_dir() or (SOURCE / inside).is_dir(), inside
    assert drawn == FLOORS


def referred_to_in_pipeline():
    """Which top-level names of the pipeline refer to which names."""
    tree = ast.parse((SOURCE / "search" / "pipeline.py").read_text())
    graph = nx.DiGraph()
    for part in tree.body:
        if isinstance(part, ast.FunctionDef | ast.ClassDef):
            graph.add_edges_from((part.name, node.id) for node in ast.walk(part) if isinstance(node, ast.Name))
    return graph


def test_the_picture_of_a_search_names_the_stages_of_the_pipeline_in_their_order():
    named = re.findall(r"\b(\w+)\(\)", PICTURES[1])
    calls = referred_to_in_pipeline()
    order = [name for name in named if name in calls and calls.out_degree(name)]
    assert order[:4] == ["discover", "discover_items", "discover_exactly", "by_criterion"]
    for above, below in itertools.pairwise(order[:4]):
        assert nx.has_path(calls, above, below)
        assert not nx.has_path(calls, below, above)
    assert all(nx.has_path(calls, "by_criterion", stage) for stage in named[4:])
    assert len(named) > 10


def test_the_files_in_the_picture_of_a_search_are_those_that_it_uses():
    named = re.findall(r"[\w/]+(?:\.py|/)(?= |;|,|:|\)|\n|$)", PICTURES[1])
    used = nx.descendants(module_graph(), "unmeasured.search.pipeline")
    assert len(named) > 20
    for path in named:
        assert place(path).exists(), path
        if path.startswith("search/") and path != "search/pipeline.py":
            module = "unmeasured." + path.rstrip("/").removesuffix(".py").replace("/", ".")
            assert module in used or any(name.startswith(f"{module}.") for name in used), path


def rows_of_changes():
    tables = CONTRIBUTING.split("## Where do I change")[1].split("## Commands")[0]
    for line in tables.splitlines():
        if line.startswith("| ") and not line.startswith("| to change"):
            yield line.split("|")[2]
    walks = CONTRIBUTING.split("## Walk-throughs")[1].split("**What we ask")[0]
    for line in walks.splitlines():
        if line.startswith("| `"):
            yield line.split("|")[1]


@pytest.mark.parametrize("cell", list(rows_of_changes()))
def test_what_the_tables_of_changes_name_exists(cell):
    names = re.findall(r"`([^`]+)`", cell)
    paths = [name for name in names if "/" in name or name.endswith(".py")]
    assert paths
    for path in paths:
        assert place(path).exists(), path
    files = [file for path in paths for file in ([place(path)] if place(path).is_file() else place(path).glob("*.py"))]
    texts = [file.read_text() for file in files]
    for word in set(names) - set(paths) - {"LGES", "result.json"}:
        assert any(re.search(rf"\b{word}\b", text) for text in texts), f"{word} is in none of {paths}"


def test_the_table_of_changes_has_the_usual_ones():
    assert len(list(rows_of_changes())) > 30


def test_every_file_of_code_that_a_page_names_exists():
    named = set()
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        text = page.read_text()
        named |= set(re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", text))
        named |= set(re.findall(r"\b(?:tests|tools|benchmarks|examples)/[a-z_/0-9]+\.py\b", text))
    assert len(named) > 40
    assert [path for path in sorted(named) if not place(path).exists()] == []
