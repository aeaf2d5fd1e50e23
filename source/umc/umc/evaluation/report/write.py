# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Write the report of a study: all files, or none of them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from os import fsync
from pathlib import Path

from matplotlib.figure import Figure

from umc.evaluation.breakdown import SliceScore, break_down
from umc.evaluation.estimates import Estimates, too_few_robots
from umc.evaluation.metrics import main_rates
from umc.evaluation.report import plots
from umc.evaluation.report.content import cells_csv, robots_csv, study_content
from umc.evaluation.report.page import html_page, summary
from umc.evaluation.report.paper import departures, paper_tables
from umc.evaluation.report.renderers import render
from umc.evaluation.report.screen import healthy_falls, score_table
from umc.evaluation.report.tables import TOO_FEW, all_tables
from umc.evaluation.statistics import RESAMPLES
from umc.evaluation.study import Study
from umc.faults.kinds import find_kind
from umc.utils.console import timed
from umc.utils.io import atomic_write
from umc.utils.naming import display_name

PAGE = "report.html"
"""The page to open first."""


def report_study(study: Study, out: Path) -> None:
    """Print the scores of a study and write its report."""
    for result in study.policies:
        print(result.label)
        print(score_table(study, result))
    for line in [*([TOO_FEW] if too_few_robots(study) else []), *healthy_falls(study)]:
        print(line)
    with timed("writing the report"):
        page = write_study_report(study, out)
    print(f"report: {page}", flush=True)


def write_study_report(study: Study, out: Path, resamples: int = RESAMPLES) -> Path:
    """Write ``report.html``, ``report.json``, two CSV files, ``tables.md``, ``tables.tex`` and figures."""
    write_all(out, study_files(study, resamples))
    return out / PAGE


def study_files(study: Study, resamples: int = RESAMPLES) -> dict[str, bytes]:
    """Return the files of a report."""
    estimates = Estimates(study, resamples)
    parts = {result.label: break_down(study, result) for result in study.policies}
    kinds = {one.slice.kind for some in parts.values() for one in some if one.slice.kind}
    units = {kind: find_kind(kind).unit for kind in kinds}
    tables = all_tables(estimates, parts, units)

    content = json.dumps(study_content(estimates, parts), indent=1, allow_nan=False)
    files = {"report.json": f"{content}\n".encode()}
    files |= {"robots.csv": robots_csv(study).encode(), "cells.csv": cells_csv(study).encode()}
    findings, cautions = summary(estimates)
    words = {"findings": findings, "cautions": cautions, "departures": departures(study)}
    files["tables.md"] = render(
        "tables.md", robot=display_name(study.protocol.robot), protocol=study.protocol, tables=tables, **words
    ).encode()
    files["tables.tex"] = render("tables.tex", tables=tables).encode()
    drawn = []
    for name, figure, caption in pictures(estimates, parts, units):
        svg = plots.image(figure, "svg")
        files |= {f"figures/{name}.png": plots.image(figure, "png"), f"figures/{name}.svg": svg}
        drawn.append((name, svg, caption))
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items() if not name.startswith("figures/")}
    files[PAGE] = html_page(estimates, tables, drawn, hashes).encode()
    return files


def pictures(
    estimates: Estimates, parts: Mapping[str, Sequence[SliceScore]], units: Mapping[str, str]
) -> Iterator[tuple[str, Figure, str]]:
    """Yield name, figure and caption of each picture."""
    study = estimates.study
    rates = " and ".join(metric.title for metric in main_rates(study.protocol.radii))
    mains = [table for table in paper_tables(study.protocol) if table.rows_are == "Methods"]
    paper = {name.removesuffix(" (Ours)"): row for table in mains for name, row in table.rows.items()}
    yield "scenarios", plots.scenario_bars(estimates), f"{rates} by scenario, with 95% intervals."
    beside = " Dashed: the paper's rows, from another simulator." if paper else ""
    yield "reached", plots.reached_curves(estimates, paper), f"reached@k averaged over scenarios, 95% bands.{beside}"
    alone = len(study.policies) == len(estimates.groups)
    drawn = ", with 95% {}" if alone else "; one line for each training"
    bands, intervals = map(drawn.format, ("bands", "intervals"))
    words = f"Robots still standing since onset (Kaplan-Meier){bands}. Episodes that ended standing count until then."
    yield "survival", plots.survival_curves(study), words
    differences = plots.paired_differences(estimates)
    if differences is not None:
        first = next(iter(estimates.groups))
        certain = "without intervals: too few robots" if estimates.too_few else "95% intervals"
        filled = "" if estimates.too_few else " Filled marks: p below 0.05."
        yield "differences", differences, f"Differences from {first} over the same robots, {certain}.{filled}"
    cost = plots.cost_curves(estimates)
    if cost is not None:
        words = "What errors of a detector cost, averaged over scenarios, with 95% bands. At 0: the simulator's report."
        yield "detector_errors", cost, words
    severities = plots.severity_sweep(study, parts, units)
    if severities is not None:
        words = f"{rates} over the severity{intervals}. Each mark holds about as many robots"
        words += "; those of one severity are drawn side by side." if alone else "."
        yield "severity", severities, words
    for number, (group, members) in enumerate(estimates.groups.items(), 1):
        some = [parts[study.policies[member].label] for member in members]
        if any(one.slice.by == "joint" for one in some[0]):
            words = "a robot with several faulty joints counts in the row of each."
            caption = f"{group}: {rates} by faulty joint and scenario; {words}"
            yield f"joints_{number}", plots.joint_heatmap(study, group, some), caption


def write_all(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files that belong together: none takes its name before all are on the disk."""
    with ExitStack() as stack:
        for name, data in files.items():
            file = stack.enter_context(atomic_write(folder / name))
            file.write(data)
            file.flush()
            fsync(file.fileno())
    _drop_old_figures(folder, files)


def _drop_old_figures(folder: Path, files: Mapping[str, bytes]) -> None:
    """Figures of an earlier report with other policies would lie beside this one's."""
    for path in (folder / "figures").glob("*.*"):
        names = r"scenarios|reached|survival|differences|detector_errors|severity|joints_\d+"
        own = re.fullmatch(rf"({names})\.(png|svg)", path.name)
        if own and f"figures/{path.name}" not in files:
            path.unlink()
