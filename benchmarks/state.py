"""Which state of the code a record was made by: a digest of the source files that can change a method's answer.

A record is comparable with today's package only if the code behind its *method* is today's. That code is what the
method's module imports, directly and indirectly, from the packages that compute::

    LGES           search/ → sem/, score.py, graphs/, data/, knowledge/
    FOFC, ...      peers/fofc.py → peers/blocks.py → sem/, graphs/, data/, parts of search/
    GIN, RLCD, GES peers/gin.py → peers/base.py, graphs/       (a library does the rest)

so a change of the search marks the records of LGES and leaves those of GIN alone. Comments, docstrings and blank lines
do not count. Presentation (reports, diagrams) is not followed: it cannot change a graph.
"""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

# Packages and modules whose code can change an answer.
COMPUTING = ("arrays", "graphs", "data", "kernels", "models", "knowledge", "search", "estimators", "peers")
# Files that count themselves but are followed into graphs/ only: what else they import fits or describes an answer that
# has been found, or checks the input.
_ENDS = ("peers/base.py", "estimators/base.py")
# Peers whose answer comes from a library, which gets the rows as they are: data/ and the engine do not change it.
_BY_LIBRARY = ("peers/gin.py", "peers/rlcd.py", "peers/ges.py")

Sources = Mapping[str, str]  # text of Python files by their path inside the package, such as "models/fit.py"


@cache
def state_of(constructor: str) -> str:
    """The state of the code behind a method, as twelve hexadecimal digits; "" for a method from elsewhere.

    >>> len(state_of("LGES")), state_of("LGES") == state_of("FOFC")
    (12, False)
    """
    return digest_of(constructor, sources())


def digest_of(constructor: str, texts: Sources) -> str:
    """The same for the files of any state of the package."""
    reached = files_behind(constructor, texts)
    total = hashlib.sha256()
    for name in reached:
        total.update(f"{name}\0{code_alone(texts[name])}\0".encode())
    return total.hexdigest()[:12] if reached else ""


def files_behind(constructor: str, texts: Sources) -> tuple[str, ...]:
    """The files that can change the answer of a method, in alphabetical order.

    >>> "estimators/lges.py" in files_behind("LGES", sources()), "estimators/lges.py" in files_behind("GIN", sources())
    (True, False)
    """
    start = _file_of(constructor, texts)
    if start is None:
        return ()
    reached, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        new = {name for name in _imported(here, texts) if _is_followed(here, name, start)} - reached
        reached |= new
        waiting += new
    return tuple(sorted(reached))


def _is_followed(here: str, there: str, start: str) -> bool:
    if not any(there == f"{part.replace('.', '/')}.py" or there.startswith(f"{part}/") for part in COMPUTING):
        return False
    if here in _ENDS or (start in _BY_LIBRARY and not there.startswith("peers/")):
        return there.startswith("graphs/")
    return True


def _file_of(constructor: str, texts: Sources) -> str | None:
    """The file a method is defined in: that of a public name of the package, or of ``module:Name``."""
    module, _, name = constructor.rpartition(":")
    if not module:
        lists = [texts[path] for path in ("__init__.py", "peers/__init__.py") if path in texts]
        public = {alias.asname or alias.name: node.module for text in lists for node, alias in _from_imports(text)}
        module = public.get(name) or ""
    return _file(module, texts)


def _file(module: str, texts: Sources) -> str | None:
    path = module.removeprefix("unmeasured.").replace(".", "/")
    return next((name for name in (f"{path}.py", f"{path}/__init__.py") if name in texts), None)


def _imported(name: str, texts: Sources) -> set[str]:
    """The files of the package that a file imports, wherever in it the import stands."""
    found = set()
    for node, alias in _from_imports(texts[name]):
        for module in (f"{node.module}.{alias.name}", node.module or ""):
            if module.startswith("unmeasured.") and (path := _file(module, texts)):
                found.add(path)
                break
    return found


@cache
def _from_imports(text: str) -> tuple[tuple[ast.ImportFrom, ast.alias], ...]:
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    return tuple((node, alias) for node in nodes for alias in node.names)


@cache
def sources() -> Sources:
    """Return the Python files of the package as it is installed, and of the methods that only benchmarks have."""
    ours = files("benchmarks").joinpath("real.py").read_text(encoding="utf-8")
    return {**dict(_walk(files("unmeasured"), "")), "benchmarks/real.py": ours}


def _walk(folder: Traversable, prefix: str) -> Iterable[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".py"):
            yield prefix + entry.name, entry.read_text(encoding="utf-8")


@cache
def code_alone(text: str) -> str:
    r"""Source text without comments, docstrings, blank lines and spaces at the ends of lines.

    >>> code_alone('def one():  # simple\n    "Docs."\n\n    return 1\n')
    'def one():\n    return 1'
    """
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(text)):
        for docstring in _docstrings(node):
            for row in range(docstring.lineno - 1, docstring.end_lineno or docstring.lineno):
                lines[row] = ""
    return "\n".join(kept for line in lines if (kept := line.rstrip()))


def _docstrings(node: ast.AST) -> list[ast.Expr]:
    """The expression statement that documents a module, class or function, if there is one."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or not node.body:
        return []
    first = node.body[0]
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return [first] if is_text and isinstance(first, ast.Expr) else []
