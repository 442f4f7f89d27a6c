"""The documentation site builds without a warning, its links lead somewhere, and it needs no network."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
import site_pages

import unmeasured as um
from unmeasured.models.fit import Fit
from unmeasured.models.multigroup import GroupFit, MeanFit
from unmeasured.search.data_check import Check

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))


class Page(HTMLParser):
    """The anchors of a page, what it links to, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("script", "img", "iframe", "source", "video", "audio") and given.get("src"):
            self.loads.append(given["src"])
        if tag == "link" and given.get("href") and given.get("rel") not in ("canonical",):
            self.loads.append(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for library in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(library, reason="the extra 'docs', which builds the site, is not installed")
    out = tmp_path_factory.mktemp("documentation") / "site"
    command = [sys.executable, str(ROOT / "tools" / "site_pages.py"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    return {path.relative_to(out).as_posix(): path for path in out.rglob("*.html")}, out


def test_every_link_and_anchor_is_there(site):
    paths, _ = site
    read = functools.cache(lambda path: Page(path))
    dead = []
    for name, path in paths.items():
        for link in [*read(path).links, *read(path).loads]:
            if re.match(r"(https?|mailto|data):", link):
                continue
            file, _, anchor = link.partition("#")
            goal = (path.parent / unquote(file.partition("?")[0])).resolve() if file else path
            if not goal.exists() or (anchor and goal.suffix == ".html" and unquote(anchor) not in read(goal).anchors):
                dead.append(f"{name}: {link}")
    assert dead == []
    assert len(paths) > 40
    assert sum(len(read(path).links) for path in paths.values()) > 1000


def test_nothing_is_loaded_from_a_network(site):
    paths, out = site
    for path in paths.values():
        assert [load for load in Page(path).loads if re.match(r"(https?:)?//", load)] == []
    for style in out.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", style.read_text("utf-8"))


def test_the_reference_has_every_public_name_and_command(site):
    paths, _ = site
    text = "".join(path.read_text("utf-8") for name, path in paths.items() if name.startswith("reference/"))
    for name in um.__all__:
        assert f"um.{name}<" in text, name
    listed = [name for _, names in site_pages.REFERENCE.values() for name in names.split()]
    assert sorted(listed) == sorted(um.__all__)
    assert site_pages.INSIDE["peers"].split() == um.peers.__all__
    for name, places in site_pages.RETURNED.items():
        for place in places:
            assert f"{place.rpartition('.')[2]}, returned by um.{name}<" in text, place
    anchors = Page(paths["reference/search.html"]).anchors
    assert {"unmeasured.LGES", "unmeasured.LGES.fit", "unmeasured.LGES.fit_cov"} <= anchors
    assert "One row per parameter: <code" in paths["reference/answer.html"].read_text("utf-8")  # no type of napoleon's
    assert "--covariates" in paths["reference/commands.html"].read_text("utf-8")


def test_tutorials_show_what_was_made(site):
    paths, _ = site
    page = paths["tutorials/first_discovery.html"]
    assert "RMSEA (90%)" in page.read_text("utf-8")
    assert any("first_discovery" in load for load in Page(page).loads)


def test_every_page_has_its_place():
    listed = [name for names in site_pages.PAGES.values() for name in names]
    assert len(listed) == len(set(listed))
    assert {name for name in listed if "/" not in name} == {path.stem for path in DOCS} | {
        "Overview <self>",
        "changelog",
        "contributing",
    }
    examples = {f"tutorials/{path.stem}" for path in (ROOT / "examples").glob("*.py")}
    assert {name for name in listed if name.startswith("tutorials/")} == examples


def test_a_dead_link_stays_one_and_a_file_off_the_site_is_no_link():
    text = "[a](missing.md) [b](../src/unmeasured/cli/commands.py) [data.md](data.md#columns) [c](https://example.org)"
    made = site_pages.relinked(text, "docs/install.md", "install.md", {"data.md": "Data"})
    assert made == "[a](missing.md) b [Data](data.md#columns) [c](https://example.org)"
    made = site_pages.relinked("see `docs/data.md`, `docs/x.md`", "docs/install.md", "install.md", {"data.md": "Data"})
    assert made == "see [Data](data.md), `docs/x.md`"
    text = "```python\n[x](../src/unmeasured/cli/commands.py)\n```\n[guide](docs/data.md)"
    made = site_pages.relinked(text, "README.md", "tutorials/x.md", {})
    assert made == "```python\n[x](../src/unmeasured/cli/commands.py)\n```\n[guide](../data.md)"


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(SystemExit, match="would be lost; give --out another folder"):
        site_pages.build(tmp_path, tmp_path / "pages")
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


@functools.cache
def commands():
    from typer.main import get_command

    from unmeasured.cli.commands import app

    return get_command(app).commands


def calls_in(text):
    """Calls of public names in the code of a page, inline code too, as far as it is Python."""
    for block, inline in re.findall(r"^```python\n(.*?)^```$|`([^`\n]+)`", text, flags=re.M | re.S):
        with contextlib.suppress(SyntaxError):
            for node in ast.walk(ast.parse(block or inline)):
                if isinstance(node, ast.Call) and re.fullmatch(r"um(\.\w+)+", ast.unparse(node.func)):
                    yield node


def test_calls_in_pages_are_found():
    pages = [path.read_text("utf-8") for path in DOCS]
    assert sum(len(list(calls_in(page))) for page in pages) > 150
    assert [ast.unparse(call) for call in calls_in("so `um.fit(m, rows, equal=['x'])` and `f(`")] == [
        "um.fit(m, rows, equal=['x'])"
    ]


@pytest.mark.parametrize("path", [ROOT / "README.md", *DOCS], ids=lambda path: path.name)
def test_names_and_options_in_the_pages_exist(path):
    """`um.name`, attributes of fits and results, and options of commands, wherever a page names them."""
    text, missing = path.read_text("utf-8"), []
    for name in re.findall(r"\bum\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)", text):
        thing = um
        for part in name.split("."):
            is_field = part in getattr(thing, "__annotations__", {}) or part in getattr(
                thing, "__dataclass_fields__", {}
            )
            if is_field:
                break
            if not hasattr(thing, part):
                missing.append(f"um.{name}")
                break
            thing = getattr(thing, part)
    for call in calls_in(text):
        thing = um
        for part in ast.unparse(call.func).split(".")[1:]:
            thing = getattr(thing, part)
        known = inspect.signature(thing).parameters
        if not any(one.kind is one.VAR_KEYWORD for one in known.values()):
            missing += [f"{ast.unparse(call)}: {key.arg}" for key in call.keywords if key.arg not in known]
    owners = {"fit": (Fit, GroupFit, MeanFit), "result": (um.Result,), "check": (Check,)}
    for owner, name in re.findall(r"`(fit|result|check)\.([a-z_]\w*)", text):
        fields = [{*dir(one), *getattr(one, "__dataclass_fields__", {})} for one in owners[owner]]
        if name not in ("json", "html") and not any(name in found for found in fields):
            missing.append(f"{owner}.{name}")
    for command, rest in re.findall(r"\bunmeasured ([a-z][a-z-]*)([^`\n|&;]*)", text):
        if command not in commands():
            continue
        known = {option for given in commands()[command].params for option in (*given.opts, *given.secondary_opts)}
        unknown = set(re.findall(r"(?<=\s)(--[a-z][a-z-]*)", rest)) - known - {"--help"}
        missing += [f"unmeasured {command} {option}" for option in unknown]
    assert missing == []
