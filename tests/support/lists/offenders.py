"""Runs many cases of one check as one test that lists the failures. Takes the arguments of `pytest.mark.parametrize`;
for cases that share the test's fixtures, such as the files of a folder or the rows of a table."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest

Test = Callable[..., Any]


def each(
    names: str | Sequence[str], cases: Iterable[Any], ids: Iterable[str] | Callable[[Any], str] | None = None
) -> Callable[[Test], Test]:
    """Makes one test of a function with these parameters. All cases run, even after a failure."""
    words = [word.strip() for word in names.split(",")] if isinstance(names, str) else list(names)
    rows = list(_rows(cases, len(words)))
    if ids is not None:
        called = [ids(values[0]) for _, values, _ in rows] if callable(ids) else list(ids)
        rows = [(name, values, marks) for name, (_, values, marks) in zip(called, rows, strict=True)]

    def decorate(test: Test) -> Test:
        assert rows, f"{test.__name__}: no cases"
        named = [(name, dict(zip(words, values, strict=True))) for name, values, _ in rows]

        if inspect.iscoroutinefunction(test):

            @functools.wraps(test)
            async def run(**fixtures: Any) -> None:
                failed = Offenders()
                for name, case in named:
                    with failed.of(name):
                        await test(**fixtures, **case)
                failed.check()

        else:

            @functools.wraps(test)
            def run(**fixtures: Any) -> None:
                failed = Offenders()
                for name, case in named:
                    with failed.of(name):
                        test(**fixtures, **case)
                failed.check()

        taken = inspect.signature(test).parameters
        assert set(words) <= set(taken), f"{test.__name__}: takes no {set(words) - set(taken)}"
        left = inspect.Signature([taken[name] for name in taken if name not in words])
        run.__signature__ = left  # type: ignore[attr-defined]  # pytest reads the fixtures from it
        del run.__wrapped__
        for _, _, marks in rows:
            for mark in marks:
                run = mark(run)
        return run

    return decorate


def _rows(cases: Iterable[Any], width: int) -> Iterator[tuple[str, Sequence[Any], Iterable[pytest.MarkDecorator]]]:
    """The name, the values and the marks of each case."""
    param: type[Any] = type(pytest.param())
    for case in cases:
        if isinstance(case, param):
            values, marks, name = case.values, case.marks, case.id
        else:
            values, marks, name = (case,) if width == 1 else case, (), None
        yield str(name or ", ".join(map(repr, values))), values, marks


class Offenders:
    """The cases that failed, by name."""

    def __init__(self) -> None:
        self._failed: list[tuple[str, BaseException]] = []
        self._name = ""

    def of(self, name: str) -> Offenders:
        self._name = name
        return self

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        # pytest.fail and pytest.raises raise exceptions outside of Exception.
        if not isinstance(error, Exception | pytest.fail.Exception):
            return False
        self._failed.append((self._name, error))
        return True

    def check(self) -> None:
        """Fails with a line for each, and the traceback of the first."""
        if self._failed:
            lines = [f"{name}: {type(error).__name__}: {error}" for name, error in self._failed]
            raise AssertionError("\n".join(lines)) from self._failed[0][1]
