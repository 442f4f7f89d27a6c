"""Build the documentation site: ``python tools/site_pages.py`` writes it to ``build/site``; open ``index.html`` there.

Pages are those of ``docs`` as they are. Beside them: the start page from the README, tutorials from the notebooks in
``examples`` as they are stored, and the reference, from the docstrings of all public names and the help of commands.
Links between files of the repository become links between pages. Sphinx makes the site, and every warning of it ends
the build with exit code 1.
"""

from __future__ import annotations

import argparse
import os
import posixpath
import re
import shutil
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import notebooks

ROOT = Path(__file__).resolve().parents[1]

# The order of the pages; a test compares it with what is in docs and examples.
PAGES = {
    "Start": ["Overview <self>", "install", "app"],
    "Tutorials": [
        "tutorials/first_discovery",
        "tutorials/from_spss_to_scores",
        "tutorials/questionnaire_to_report",
        "tutorials/published_matrix",
        "tutorials/confirm_and_compare",
        "tutorials/compare_with_published",
        "tutorials/covariates_and_outcomes",
        "tutorials/groups_of_people",
        "tutorials/how_stable",
        "tutorials/large_inventory",
        "tutorials/likert_with_missing_values",
        "tutorials/reading_a_trace",
        "tutorials/your_own_move",
    ],
    "How-to": [
        "data",
        "knowledge",
        "covariates",
        "groups",
        "robust",
        "answer",
        "stability",
        "after",
        "report",
        "scaling",
        "cluster",
    ],
    "Concepts": ["concepts", "questionnaires", "hierarchy", "how-it-works", "departures", "glossary"],
    "Other programs": ["coming-from", "not-here"],
    "Reference": [
        "reference/commands",
        "reference/search",
        "reference/data",
        "reference/answer",
        "reference/fit",
        "reference/trust",
        "reference/graphs",
        "reference/simulate",
        "reference/peers",
        "reference/errors",
    ],
    "Benchmarks": ["benchmarks", "peers", "search-notes"],
    "Project": ["changelog", "contributing"],
}

# Every public name of the package stands on one of these pages; a test compares them with `unmeasured.__all__`.
REFERENCE = {
    "search": ("The search", "LGES Knowledge ExactSearch estimate_cost count_gnfm use_device"),
    "data": ("Data", "read read_matrix Table as_sample Sample check split_rows datasets"),
    "answer": ("Answers, reports and articles", "Result compare_models write_report publication"),
    "fit": ("Fits of a model", "fit fit_many invariance dimension"),
    "trust": ("How sure it is", "stability penalty_path confirm"),
    "graphs": ("Graphs", "DAG CPDAG graphs"),
    "simulate": ("Simulation and comparison with a truth", "simulate metrics"),
    "peers": ("Other methods", "peers"),
    "errors": (
        "Errors and warnings",
        "UnmeasuredError DataError GraphError ModelError SearchStopped UnmeasuredWarning",
    ),
}
# Types that only functions make, each after the function that returns it, and names of public packages.
RETURNED = {
    "estimate_cost": ("search.cost.Cost",),
    "check": ("search.data_check.Check",),
    "compare_models": ("results.compare.ModelComparison",),
    "publication": ("output.publish.publication.Publication",),
    "fit": (
        "models.fit.Fit",
        "models.estimators.OrdinalFit",
        "models.multigroup.GroupFit",
        "models.multigroup.MeanFit",
        "models.parameters.Model",
        "models.parameters.Parameter",
    ),
    "invariance": ("results.invariance.Invariance",),
    "stability": ("validation.replicates.result.Stability",),
    "penalty_path": ("validation.penalty_path.PenaltyPath",),
    "confirm": ("validation.confirmation.Confirmation",),
}
INSIDE = {
    "graphs": "Variables LatentGroups is_gnfm is_hierarchical is_one_factor",
    "peers": "EGA FOFC FactorAnalysis GES GIN RLCD RankClusters TwoStage",
}


def build(out: Path, pages: Path) -> int:
    """Write the sources to one folder and the site to another; the exit code of Sphinx, 0 without any warning."""
    from sphinx.cmd.build import build_main

    for folder, mark in ((out, ".buildinfo"), (pages, "index.md")):
        if folder.exists() and any(folder.iterdir()) and not (folder / mark).exists():
            raise SystemExit(f"{folder} has other files in it, which would be lost; give --out another folder.")
    for folder in (out, pages):
        shutil.rmtree(folder, ignore_errors=True)
    write_pages(pages)
    settings = str(ROOT / "tools" / "sphinx")
    return build_main(["-b", "html", "-q", "-W", "--keep-going", "-c", settings, str(pages), str(out)])


def write_pages(folder: Path) -> None:
    """All pages of the site, as Sphinx reads them."""
    shutil.copytree(ROOT / "docs" / "images", folder / "images")
    texts = {f"{path.stem}.md": (f"docs/{path.name}", path.read_text("utf-8")) for path in (ROOT / "docs").glob("*.md")}
    readme = (ROOT / "README.md").read_text("utf-8").split("\n## Develop\n")[0]
    texts["index.md"] = ("README.md", readme + "\n" + contents())
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        texts[name.lower()] = (name, (ROOT / name).read_text("utf-8"))
    for path in (ROOT / "examples").glob("*.ipynb"):
        texts[f"tutorials/{path.stem}.md"] = (f"examples/{path.name}", tutorial(path, folder / "tutorials"))
    titles = {name: re.search(r"^# (.+)$", text, flags=re.MULTILINE) for name, (_, text) in texts.items()}
    headings = {name: found[1] for name, found in titles.items() if found}
    for name, (place, text) in texts.items():
        texts[name] = (place, relinked(text, place, name, headings))
    for name, text in {**reference(), "reference/commands.md": commands()}.items():
        texts[name] = ("", text)
    for name, (_, text) in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


def contents() -> str:
    """The contents at the side of every page."""
    parts = [f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(names) for title, names in PAGES.items()]
    return "".join(f"\n{part}\n```\n" for part in parts)


def relinked(text: str, place: str, name: str, headings: dict[str, str]) -> str:
    """Links between files of the repository as links between pages, named by the title of the page."""

    def link(match: re.Match[str]) -> str:
        mark, words, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path, _, anchor = target.partition("#")
        file = posixpath.normpath(posixpath.join(posixpath.dirname(place), path))
        goal = page_of(file)
        if goal is None:
            return words if (ROOT / file).exists() else match[0]  # a file that is not on the site; or a dead link
        if not mark and re.fullmatch(r"`?[\w/.-]+\.(md|py)`?", words):
            words = headings.get(goal, words)
        return link_to(f"{goal}#{anchor}" if anchor else goal, words, name, mark)

    def mention(match: re.Match[str]) -> str:
        return link_to(match[1], headings[match[1]], name) if match[1] in headings else match[0]

    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    for number, part in enumerate(parts):
        if not part.startswith("```"):
            part = re.sub(r"(!?)\[([^\]\[]+)\]\(([^)\s]+)\)", link, part)
            parts[number] = re.sub(r"(?<!\[)`docs/([\w-]+\.md)`", mention, part)
    return "".join(parts)


def link_to(goal: str, words: str, name: str, mark: str = "") -> str:
    """A link from one page to another."""
    path, _, anchor = goal.partition("#")
    back = os.path.relpath(path, posixpath.dirname(name) or ".")
    return f"{mark}[{words}]({back}{'#' + anchor if anchor else ''})"


def page_of(file: str) -> str | None:
    """The page of the site that a file of the repository is on, if it is on one."""
    if example := re.fullmatch(r"examples/(\w+)\.(py|ipynb)", file):
        return f"tutorials/{example[1]}.md"
    if file.startswith("docs/"):
        return file.removeprefix("docs/")
    return {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}.get(file)


def tutorial(path: Path, folder: Path) -> str:
    """A stored notebook as a page, its pictures as files beside it."""
    parts, count = [], 0
    for cell in notebooks.stored(path):
        if cell.kind == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        if cell.printed:
            parts.append(f"```{{code-block}} text\n:class: output\n\n{cell.printed}\n```")
        for picture in cell.pictures:
            count += 1
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{path.stem}-{count}.png").write_bytes(picture)
            parts.append(f"![Picture made by the cell above]({path.stem}-{count}.png)")
    parts.append(
        f"The script is `examples/{path.stem}.py`, the notebook `examples/{path.name}`. Tests run its cells and "
        "compare what they print with what stands here."
    )
    return "\n\n".join(parts) + "\n"


def reference() -> dict[str, str]:
    """Pages with the docstrings of all public names."""
    import unmeasured as um

    pages = {}
    for key, (title, names) in REFERENCE.items():
        parts = [f"# {title}\n\nWith `import unmeasured as um`: {', '.join(f'`um.{name}`' for name in names.split())}."]
        for name in names.split():
            thing = getattr(um, name)
            parts.append(f"## um.{name}\n\n{described(thing, f'unmeasured.{name}', is_listed=name not in INSIDE)}")
            for place in RETURNED.get(name, ()):
                module, _, kind = place.rpartition(".")
                thing = getattr(import_module(f"unmeasured.{module}"), kind)
                parts.append(f"## {kind}, returned by um.{name}\n\n{described(thing, f'unmeasured.{place}')}")
            for inner in INSIDE.get(name, "").split():
                thing = getattr(getattr(um, name), inner)
                parts.append(f"## um.{name}.{inner}\n\n{described(thing, f'unmeasured.{name}.{inner}')}")
        pages[f"reference/{key}.md"] = "\n\n".join(parts) + "\n"
    return pages


def described(thing: Any, place: str, *, is_listed: bool = True) -> str:
    """Sphinx's directive for a function, a class or a module; ``is_listed``: with the members of the module."""
    if isinstance(thing, ModuleType):
        kind, place, options = "automodule", thing.__name__, "   :members:\n" if is_listed else ""
    elif isinstance(thing, type):
        kind, options = "autoclass", CLASS
    else:
        kind, options = "autofunction", ""
    return f"```{{eval-rst}}\n.. {kind}:: {place}\n{options}```"


CLASS = (
    "   :members:\n"
    "   :inherited-members: BaseEstimator, TransformerMixin, ClassNamePrefixFeaturesOutMixin, Exception, UserWarning\n"
    "   :exclude-members: set_fit_request, set_output, get_metadata_routing\n"
)


def commands() -> str:
    """The help of every command, as the command prints it."""
    from typer.main import get_command
    from typer.testing import CliRunner

    from unmeasured.cli.commands import app

    def help_of(*words: str) -> str:
        wide = {"TERMINAL_WIDTH": "100", "COLUMNS": "100"}
        done = CliRunner().invoke(app, [*words, "--help"], prog_name="unmeasured", env=wide)
        if done.exit_code:
            raise RuntimeError(f"unmeasured {' '.join(words)} --help: {done.output}")
        return f"```text\n{done.output.strip()}\n```"

    parts = ["# Commands\n\nWhat `--help` prints.", help_of()]
    parts += [f"## unmeasured {name}\n\n{help_of(name)}" for name in get_command(app).commands]  # type: ignore[attr-defined]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="a folder, which is replaced")
    folder = parser.parse_args().out
    code = build(folder, folder.with_name(folder.name + "-pages"))
    print(folder / "index.html" if code == 0 else "The site has faults; see above.")
    sys.exit(code)
