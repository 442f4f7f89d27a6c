"""What a case is, and how a module lists its cases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Rows and published matrices that are not ours to store: a folder beside the repository, where there is one.
SHARED = Path(__file__).parents[4] / "shared" / "data"


@dataclass(frozen=True)
class Case:
    """A named run."""

    name: str
    run: Callable[[], Any]
    cost: float = 1.0  # about the seconds that it takes: costly ones are begun first
    files: tuple[str, ...] = ()  # of the shared data
    libraries: tuple[str, ...] = ()

    @property
    def is_runnable(self) -> bool:
        """Whether the data and libraries that it needs are here."""
        return all((SHARED / name).exists() for name in self.files) and all(map(find_spec, self.libraries))


@dataclass
class Table:
    """The cases of a module, in order."""

    cases: list[Case] = field(default_factory=list)

    def add(
        self,
        name: str,
        run: Callable[[], Any],
        *,
        cost: float = 1.0,
        files: Sequence[str] = (),
        libraries: Sequence[str] = (),
    ) -> None:
        """Add a case."""
        if any(case.name == name for case in self.cases):
            raise ValueError(f"There are two cases {name!r}.")
        self.cases.append(Case(name, run, cost, tuple(files), tuple(libraries)))

    def case(self, name: str, **options: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
        """Add the function below as a case."""

        def added(run: Callable[[], Any]) -> Callable[[], Any]:
            self.add(name, run, **options)
            return run

        return added
