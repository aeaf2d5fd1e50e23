# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Section "Without an oracle" of the results page, from a diagnosis and a study that are kept beside the page.

Keep them: ``./isaaclab.sh -p -m tools.results_page.without_oracle --robot a1 --diagnosis diagnosis.json --study
study.pt``, of ``umc diagnose`` and of ``umc evaluate protocol.noise=true --detection oracle detector:file=PATH none``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from umc.evaluation.estimates import Estimates
from umc.evaluation.metrics import main_rates
from umc.evaluation.report.renderers import NOTHING, percent, printed
from umc.evaluation.statistics import Interval, poisson_rate
from umc.evaluation.study import Study, load_study, save_study
from umc.tasks.registry import checked_robot
from umc.utils.cli import Parser, path, run_main
from umc.utils.errors import UmcError
from umc.utils.io import atomic_write
from umc.utils.text import read_json

from tools.results_page.kept import without_paths

FOLDER = "detector"
"""Folder of both files, in that of a section's studies."""

DIAGNOSIS, SOURCES = "diagnosis.json", "sources.study"

AGAIN = "run umc diagnose again"


def section(folder: Path, title: str) -> dict[str, Any] | None:
    """Return what the section says of a robot, from the folder of its studies; None where nothing is kept."""
    diagnosis, study = folder / FOLDER / DIAGNOSIS, folder / FOLDER / SOURCES
    found = {
        "title": title,
        **(_diagnosed(diagnosis) if diagnosis.is_file() else {"faults": [], "alarms": "", "about": ""}),
        **(_compared(load_study(study)) if study.is_file() else {"sources": []}),
    }
    return found if found["faults"] or found["sources"] else None


def _diagnosed(file: Path) -> dict[str, Any]:
    content = read_json(file, AGAIN)
    try:
        times = [f"{t} s" for t in next(iter(content["found"].values()))["found_within_s"]]
        faults = [_fault(name, one) for name, one in content["found"].items() if one["count"]]
        alarms, about = content["false_alarms"], content["about"]
        rate = poisson_rate(int(alarms["count"]), float(alarms["healthy_minutes"]))
        right = content["right_joint"]
        words = [f"{alarms['count']} false alarms in {alarms['healthy_minutes']:.0f} minutes of healthy walking"]
        if rate is not None:
            words[0] += f", {printed(rate.value, 2)} a minute [{printed(rate.low, 2)}, {printed(rate.high, 2)}]"
        words += [] if right is None else [f"the first joint reported is a faulty one in {percent(Interval(*right))}"]
        said = f"{about['engine']}, {content['robot_minutes']:.0f} robot-minutes, pushes: {about['pushes']}"
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
        raise UmcError(f"{file} is no diagnosis ({error!r}); {AGAIN}") from error
    return {"times": times, "faults": faults, "alarms": "; ".join(words), "about": said}


def _fault(name: str, one: Mapping[str, Any]) -> list[str]:
    rates = [NOTHING if rate is None else percent(Interval(*rate)) for rate in one["found_within_s"].values()]
    middle = one["median_delay_s"]
    return [name, str(one["count"]), *rates, "never" if middle is None else printed(middle, 2)]


def _compared(study: Study) -> dict[str, Any]:
    """Return what each source of mask and flag gives, and the difference from the first over the same robots."""
    estimates, rates = Estimates(study), main_rates(study.protocol.radii)
    groups = list(estimates.groups)
    rows = []
    for number, (result, group) in enumerate(zip(study.policies, groups, strict=True)):
        cells = [f"`{result.about.get('detection', result.label)}`"]
        for rate in rates:
            cells.append(percent(estimates.group(group, rate.key)))
            found = estimates.difference(groups[0], group, rate.key) if number else None
            cells.append(NOTHING if found is None else _points(100 * found.value, 100 * found.low, 100 * found.high))
        rows.append(cells)
    noise = "as in the training" if study.protocol.noise else "none"
    return {"sources": rows, "robots": f"{len(study.policies[0].run.cell)} robots (sensor noise: {noise})"}


def _points(value: float, low: float, high: float) -> str:
    ends = "" if low != low else f" [{printed(low, 1, '+')}, {printed(high, 1, '+')}]"  # NaN: too few robots
    return f"{printed(value, 1, '+')}{ends}"


def keep(folder: Path, diagnosis: Path | None, study: Path | None) -> None:
    """Keep a diagnosis and a study of several sources for a section, without the paths of this machine."""
    folder = folder / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    if diagnosis is not None:
        _diagnosed(diagnosis)
        with atomic_write(folder / DIAGNOSIS) as file:
            file.write(diagnosis.read_bytes())
    if study is not None:
        whole = load_study(study)
        if any("detection" not in one.about for one in whole.policies):
            raise UmcError(f"{study} has policies without a source; evaluate them with --detection")
        save_study(folder / SOURCES, without_paths(whole))


def main(argv: Sequence[str]) -> int:
    """Keep the files that are given."""
    parser = Parser(prog="python -m tools.results_page.without_oracle", description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--robot", required=True, help="robot of the section; a1_perlin is A1 on tracks")
    add("--diagnosis", type=path, help="diagnosis.json of umc diagnose")
    add("--study", type=path, help="study.pt of umc evaluate --detection")
    add("--out", type=Path, default=Path("docs/results"), help="studies of the page (docs/results)")
    options = parser.parse_args(argv)
    if options.diagnosis is None and options.study is None:
        raise UmcError("nothing to keep; give --diagnosis, --study or both")
    checked_robot(options.robot.partition("_")[0])
    keep(options.out / options.robot, options.diagnosis, options.study)
    return 0


if __name__ == "__main__":
    sys.exit(run_main(main, sys.argv[1:]))
