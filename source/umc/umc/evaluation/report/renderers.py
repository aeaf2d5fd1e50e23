# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""One kind of table, written as Markdown, LaTeX and HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from umc.evaluation.estimates import Metric
from umc.evaluation.statistics import Interval

NOTHING = "-"
"""What stands where there is no figure."""

ARROWS = {1: ("↑", r"$\uparrow$"), -1: ("↓", r"$\downarrow$"), 0: ("", "")}
"""What says whether more or less is better, as text and in LaTeX."""

LATEX = {
    "\\": r"\textbackslash{}", "%": r"\%", "_": r"\_", "&": r"\&", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
    "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip
"""Characters that LaTeX reads otherwise."""


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
    """Whether a rule stands before it."""


@dataclass(frozen=True)
class Table:
    """A table with its words."""

    key: str
    """Name in files, such as ``main``."""
    title: str
    """Its caption."""
    header: tuple[str, ...]
    better: tuple[int, ...]
    """1 where more is better, -1 where less is, 0 for neither; one per column."""
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        """The table as Markdown."""
        head = [f"{name} {ARROWS[sign][0]}".strip() for name, sign in zip(self.header, self.better, strict=True)]
        lines = [f"### {self.title}", "", _pipes(head), _pipes(["---"] + ["---:"] * (len(head) - 1))]
        for row in self.rows:
            lines.append(_pipes([_markdown(cell) for cell in row.cells]))
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes), ""])

    def latex(self) -> str:
        """The table as LaTeX, in the paper's form; needs booktabs and graphicx."""
        head = [f"{_tex(name)} {ARROWS[sign][1]}".strip() for name, sign in zip(self.header, self.better, strict=True)]
        caption = " ".join([f"{self.title.rstrip('.')}.", *self.notes])
        lines = [
            r"\begin{table}[t]", rf"  \caption{{{_tex(caption)}}}", rf"  \label{{tab:umc_{self.key}}}", r"  \centering",
            r"  \resizebox{\linewidth}{!}{%", rf"  \begin{{tabular}}{{@{{}}l{'c' * (len(head) - 1)}@{{}}}}",
            r"    \toprule", f"    {' & '.join(head)} \\\\", r"    \midrule",
        ]  # fmt: skip
        for row in self.rows:
            if row.rule:
                lines.append(r"    \midrule")
            lines.append(f"    {' & '.join(_latex(cell) for cell in row.cells)} \\\\")
        return "\n".join([*lines, r"    \bottomrule", r"  \end{tabular}}", r"\end{table}", ""])

    def html(self) -> str:
        """The table as HTML."""
        head = "".join(
            f'<th scope="col">{html.escape(name)}{f" <i>{ARROWS[sign][0]}</i>" if sign else ""}</th>'
            for name, sign in zip(self.header, self.better, strict=True)
        )
        body = []
        for row in self.rows:
            names = " ".join(filter(None, [row.kind, "ruled" if row.rule else ""]))
            first, *rest = row.cells
            cells = f'<th scope="row">{_html(first)}</th>' + "".join(f"<td>{_html(cell)}</td>" for cell in rest)
            body.append(f'<tr class="{names}">{cells}</tr>' if names else f"<tr>{cells}</tr>")
        notes = "".join(f'<p class="note">{html.escape(note)}</p>' for note in self.notes)
        caption = f"<caption>{html.escape(self.title)}</caption>"
        rows = "\n".join(body)
        return (
            f'<div class="table" id="table-{html.escape(self.key)}"><table>{caption}<thead><tr>{head}</tr></thead>\n'
            f"<tbody>{rows}</tbody></table>{notes}</div>"
        )


def figure_cell(metric: Metric, found: Interval | None, rank: int = 0) -> Cell:
    """A figure as tables print it."""
    if found is None:
        return Cell(NOTHING)
    scale, digits = (100.0, 0) if metric.rate else (1.0, metric.digits)
    value, low, high = (printed(scale * number, digits) for number in (found.value, found.low, found.high))
    return Cell(f"{value}%" if metric.rate else value, f"[{low}, {high}]", rank)


def printed(value: float, digits: int, sign: str = "") -> str:
    """A number with so many digits, and no minus before nothing."""
    return f"{value:{sign}z.{digits}f}"


def ranks(values: Sequence[float | None], better: int) -> list[int]:
    """Who is best and who is next; figures that print the same rank the same."""
    known = sorted({value for value in values if value is not None}, reverse=better > 0)
    if not better or len(known) < 2:
        return [0] * len(values)
    return [known.index(value) + 1 if value in known[:2] else 0 for value in values]


def _pipes(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _markdown(cell: Cell) -> str:
    text = f"**{cell.text}**" if cell.rank == 1 else cell.text
    return f"{text} {cell.interval}".strip()


def _tex(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in text)


def _latex(cell: Cell) -> str:
    text = _tex(cell.text)
    text = {1: rf"\textbf{{{text}}}", 2: rf"\underline{{{text}}}"}.get(cell.rank, text)
    return rf"{text} {{\scriptsize {_tex(cell.interval)}}}" if cell.interval else text


def _html(cell: Cell) -> str:
    text = html.escape(cell.text)
    text = {1: f"<b>{text}</b>", 2: f"<u>{text}</u>"}.get(cell.rank, text)
    return f"{text} <small>{html.escape(cell.interval)}</small>" if cell.interval else text
