# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Position, speed and torque of one joint over the last seconds, and its limits."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from umc.mdp.fault_terms import fault_term

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

SECONDS = 5.0
"""Length of the plots [s]."""

CHARTS = (("position [rad]", "lower", "upper"), ("speed [rad/s]", "velocity", None), ("torque [N*m]", "effort", None))
"""Quantity of each chart, and its lower and upper limit; a single limit holds in both directions."""

CURVE, LIMIT = "#1f4e9c", "#d22018"
"""Colors of the signal and of its limits."""

NOW_ID, HEIGHT = "umc-now", 150
"""Id of the table of newest numbers in the page, and height of a chart [px]."""

PADDING = (10, 12, 0, 0)
"""Space in a chart above, right, below, left [px]."""

TABLE_STYLE = (
    "#{0}{{width:calc(100% - 1em);margin:0.5em;font-size:0.75em;line-height:1.3;border-collapse:collapse}}"
    "#{0} th,#{0} td{{padding:0.2em min(0.5em,0.7vw);text-align:{1}}}"
    "#{0} th{{border-bottom:1px solid #ccc}}"
    "#{0} tbody tr:nth-child(even){{background:rgba(128,128,128,0.08)}}"
)
"""Style of a table with an id and an alignment."""


class History:
    """Signals of all J joints of one env over the last seconds."""

    def __init__(self, step_dt: float) -> None:
        self._steps: deque[tuple[float, np.ndarray]] = deque(maxlen=max(round(SECONDS / step_dt), 2))

    def clear(self) -> None:
        """Remove all steps."""
        self._steps.clear()

    def add(self, time: float, values: np.ndarray) -> None:
        """Add a step: time [s]; value, lower and upper limit of each quantity, shape (charts, 3, J)."""
        self._steps.append((time, values))

    def of(self, joint: int) -> list[tuple[np.ndarray, ...]]:
        """Return time [s], value, lower and upper limit of one joint for each chart; a missing limit is NaN."""
        times = np.array([time for time, _ in self._steps])
        values = np.array([one[..., joint] for _, one in self._steps]).reshape(-1, len(CHARTS), 3)
        values = np.where(np.isfinite(values), values, np.nan)
        return [(times, *values[:, chart].T) for chart in range(len(CHARTS))]


def measure(env: ManagerBasedRLEnv, env_id: int) -> np.ndarray:
    """Return value, lower and upper limit of each quantity in an env. Shape is (charts, 3, J)."""
    robot: Any = env.scene["robot"]
    term = fault_term(env)
    assert term.writer is not None  # a fault injector is there
    limits = vars(term.state.limits(term.writer.healthy))
    signals = (robot.data.joint_pos, robot.data.joint_vel, robot.actuators.applied_effort)
    rows = []
    for signal, (_, lower, upper) in zip(signals, CHARTS, strict=True):
        low = -limits[lower] if upper is None else limits[lower]
        high = limits[lower] if upper is None else limits[upper]
        rows.append(torch.stack([signal.torch[env_id], low[env_id], high[env_id]]))
    return torch.stack(rows).cpu().double().numpy()


class Plots:
    """The three charts in the page."""

    def __init__(self, gui: Any) -> None:
        from viser import uplot

        nothing = np.zeros(1)
        self._now = gui.add_html("")
        self._handles = []
        # the axis fits the signal: limits far from it lie outside, and the table of numbers has them
        limit: dict[str, Any] = {"stroke": LIMIT, "width": 1.5, "dash": (6, 4), "auto": False}
        for name, _, _ in CHARTS:
            series = (
                uplot.Series(label="time [s]"),
                uplot.Series(label=name, stroke=CURVE, width=2),
                uplot.Series(label="min", **limit),
                uplot.Series(label="max", **limit),
            )
            self._handles.append(
                gui.add_uplot(
                    data=(nothing, nothing, nothing, nothing),
                    series=series,
                    title=name,
                    scales={"x": uplot.Scale(time=False)},
                    legend=uplot.Legend(show=False),
                    height=HEIGHT,
                    padding=PADDING,
                )
            )

    def show(self, curves: list[tuple[np.ndarray, ...]]) -> None:
        """Redraw from :meth:`History.of`."""
        for handle, curve in zip(self._handles, curves, strict=True):
            if len(curve[0]) > 1:
                handle.data = curve
        self._now.content = latest_numbers(curves)


def latest_numbers(curves: list[tuple[np.ndarray, ...]]) -> str:
    """Return the newest numbers of :meth:`History.of` as HTML."""
    lines = [
        (f'data-quantity="{name.split()[0]}"', (name, *(f"{curve[-1]:.2f}" for curve in (value, low, high))))
        for (name, _, _), (_, value, low, high) in zip(CHARTS, curves, strict=True)
        if len(value)
    ]
    return html_table(NOW_ID, "right", ("", "now", "min", "max"), lines)


def html_table(table_id: str, align: str, heads: Sequence[str], lines: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Return an HTML table; a line is the attributes of its row and its cells as plain text."""
    style = TABLE_STYLE.format(table_id, align)
    head = "".join(f"<th>{text}</th>" for text in heads)
    rows = ""
    for attributes, cells in lines:
        rows += f"<tr {attributes}>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
    table = f'<table id="{table_id}"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<style>{style}</style><div style="overflow-x:auto">{table}</div>'
