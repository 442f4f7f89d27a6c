"""The rules of the code base that a machine can check: import directions, docstrings, the README's code."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import io
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
