# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Tables of a report as Markdown, LaTeX and HTML, from the jinja2 templates beside this file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from umc.evaluation.metrics import METRICS, Metric
from umc.evaluation.statistics import Interval
from umc.utils.console import escape_markdown

NOTHING = "-"
"""Text of a cell without a figure."""

ARROWS = {1: "↑", -1: "↓", 0: ""}
"""Mark of a column in which more or less is better."""

LATEX = {
    "\\": r"\textbackslash{}", "%": r"\%", "_": r"\_", "&": r"\&", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
    "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One field."""

    text: str
    interval: str = ""
    """Its interval, printed smaller beside it."""
    rank: int = 0
    """1 for the best of its column, 2 for the next."""


@dataclass(frozen=True)
class Row:
    """One line."""

    cells: tuple[Cell, ...]
    kind: str = ""
    """``paper`` for the paper's figures, ``average`` for the last line of a block."""
    rule: bool = False
    """Whether a rule is drawn before it."""


@dataclass(frozen=True)
class Table:
    """A table with its caption and notes."""

    key: str
    """Name in files, such as ``main``."""
    title: str
    header: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        """Render heading, table and notes as Markdown."""
        return render("table.md", table=self)

    def html(self) -> str:
        """Render a table element with its notes."""
        return render("table.html", table=self)


def render(template: str, **values: Any) -> str:
    """Fill in a template; its suffix decides how values are escaped."""
    return _environment(template.rpartition(".")[2]).get_template(template).render(values)


@cache
def _environment(form: str) -> Environment:
    options: dict[str, Any] = {"html": {"autoescape": True}, "md": {"finalize": _escaped(escape_markdown)}}.get(
        form, {"finalize": _escaped(escape_latex), "block_start_string": "<%", "block_end_string": "%>",
               "variable_start_string": "<<", "variable_end_string": ">>", "comment_start_string": "<#",
               "comment_end_string": "#>"}
    )  # fmt: skip
    environment = Environment(
        loader=PackageLoader("umc.evaluation.report"), trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, undefined=StrictUndefined, **options,
    )  # fmt: skip
    environment.filters |= {"plain": display_value, "words": lambda key: key.replace("_", " ")}
    return environment


def _escaped(escape: Callable[[str], str]) -> Callable[[Any], Any]:
    # a line break would end the cell or the command that the value stands in
    return lambda value: value if isinstance(value, Markup) else escape(" ".join(str(value).splitlines()))


def escape_latex(text: str) -> str:
    """Escape what LaTeX would read as a command."""
    return "".join(LATEX.get(letter, letter) for letter in text)


def display_value(value: Any) -> str:
    """Print a value of a protocol or of a run: lists and mappings with commas, None and empty ones as ``none``."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {display_value(one)}" for key, one in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(display_value(one) for one in value) or "none"
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def head(metric: Metric, name: str = "") -> str:
    """Return the head of a metric's column, with an arrow towards the better values."""
    return f"{name or metric.title} {ARROWS[metric.better]}".strip()


def figure(metric: Metric, value: float | None) -> str:
    """Print a figure without its unit: rates in percent."""
    if value is None:
        return NOTHING
    return printed(100.0 * value, 0) if metric.rate else printed(value, metric.digits)


def percent(found: Interval | None) -> str:
    """Print a rate and its interval in percent."""
    cell = figure_cell(METRICS[0], found)
    return f"{cell.text} {cell.interval}".strip()


def figure_cell(metric: Metric, found: Interval | None, rank: int = 0) -> Cell:
    """Print a figure and its interval: rates in percent, other metrics in their unit."""
    if found is None:
        return Cell(NOTHING)
    value, low, high = (figure(metric, number) for number in (found.value, found.low, found.high))
    return Cell(f"{value}%" if metric.rate else value, "" if math.isnan(found.low) else f"[{low}, {high}]", rank)


def printed(value: float, digits: int, sign: str = "") -> str:
    """Print a number without a minus before zero; ``sign`` is ``+`` to print the sign of positive numbers, too."""
    return f"{value:{sign}z.{digits}f}"


def ranks(values: Sequence[float | None], better: int) -> list[int]:
    """Rank figures, rounded as printed: 1 best, 2 next, 0 for all others and where there is nothing to choose."""
    known = sorted({value for value in values if value is not None}, reverse=better > 0)
    if not better or len(known) < 2:
        return [0] * len(values)
    return [known.index(value) + 1 if value in known[:2] else 0 for value in values]
