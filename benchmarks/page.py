"""The page of benchmarks: a hand-written template, with tables and pictures made from records in their places.

A line of the template that is nothing but ``{{ table1 }}`` becomes the command, the table and the picture, where there
is one, of that experiment; ``{{ measured }}`` the table of all measurements. Everything else on the page was written by
hand.
"""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks import claims, experiment, figures
from benchmarks.run_records import Record, read_records
from benchmarks.tables import make_table
from unmeasured.errors import UnmeasuredError, listing, nearest

NOTE = "<!-- Made by `python -m benchmarks docs` from benchmarks/page.md and benchmarks/records; change those. -->"
# The place of the table of all measurements, whose own template is beside that of the page.
MEASURED = "measured"
_PLACE = re.compile(r"^\{\{ *([\w-]+) *\}\}$", flags=re.MULTILINE)


def filled(template: str, records: Path, images: Path) -> str:
    """The page: a template with every place filled from the records of a folder.

    >>> filled("# Benchmarks", Path("records"), Path("images")).splitlines()[-1]
    '# Benchmarks'
    """
    return f"{NOTE}\n\n" + _PLACE.sub(lambda found: section(found[1], records, images), template)


def section(name: str, records: Path, images: Path) -> str:
    """The command, the table and the picture of an experiment."""
    if name == MEASURED:
        return claims.filled((records.parent / f"{MEASURED}.md").read_text(encoding="utf-8"), records).strip()
    known = experiment.available()
    if name not in known:
        hint = nearest(name, known) or "."
        raise UnmeasuredError(f"The template has a place for {name!r}{hint} There are {listing(known, 20)}.")
    path, asked = records / f"{name}.jsonl", experiment.load(name)
    labels = {method.label for method in asked.methods}
    found = [record for record in read_records(path) if record.task.method in labels] if path.exists() else []
    return _described(asked, found, images) if found else f"`python -m benchmarks {name}`: no records yet."


def _described(asked: experiment.Experiment, found: list[Record], images: Path) -> str:
    """Methods and seeds that have no records at all are left out of the table and named below it."""
    methods, seeds = {record.task.method for record in found}, {record.task.seed for record in found}
    absent = [m.label for m in asked.methods if m.label not in methods]
    n_seeds = sum(seed in seeds for seed in asked.seeds)
    shown = asked.restricted([m.label for m in asked.methods if m.label in methods]).first_seeds(max(n_seeds, 1))
    parts = [f"`{_command(asked, shown)}`", make_table(shown, found).markdown()]
    if absent:
        parts[-1] += f"\n- Not run yet: {'; '.join(absent)}."
    parts += [f"![{shown.title}]({images.name}/{picture})" for picture in figures.pictures_of(asked.name, images)]
    return "\n\n".join(parts)


def _command(asked: experiment.Experiment, shown: experiment.Experiment) -> str:
    """What makes the table that is shown."""
    seeds = f" --seeds {len(shown.seeds)}" if len(shown.seeds) < len(asked.seeds) else ""
    some = len(shown.methods) < len(asked.methods)
    methods = "".join(f" --method '{method.label}'" for method in shown.methods) if some else ""
    return f"python -m benchmarks {asked.name}{seeds}{methods}"
