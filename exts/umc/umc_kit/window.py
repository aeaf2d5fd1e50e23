# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Draw the panel with omni.ui and send clicks to it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import omni.ui as ui

if TYPE_CHECKING:
    from umc.kit import FaultPanel

TITLE = "UMC faults"
WIDTH, HEIGHT = 760, 520
LINE = 24
"""Height of a line [px]."""
SWATCH = 12
COLUMNS = (190, 130, 120, 75, 65)
"""Widths of the table's columns [px]."""
BUTTON = 56
ERROR, QUIET = 0xFF5555FF, 0xFFAAAAAA
"""Colors of messages, 0xAABBGGRR."""
NOTHING = 0x00000000


def packed(color: tuple[float, float, float]) -> int:
    """Convert red, green, blue in [0, 1] to 0xAABBGGRR, as styles of omni.ui expect."""
    red, green, blue = (round(255 * value) for value in color)
    return 0xFF << 24 | blue << 16 | green << 8 | red


class PanelWindow:
    """The window of a panel."""

    def __init__(self, panel: FaultPanel) -> None:
        from umc.kit import HEADINGS, LEGEND

        self._panel = panel
        self._built_for: tuple[Any, ...] = ()
        self._cells: list[tuple[Any, list[Any], Any]] = []
        self._window = ui.Window(TITLE, width=WIDTH, height=HEIGHT)
        with self._window.frame, ui.VStack(spacing=4):
            self._title = ui.Label("", height=LINE)
            with ui.HStack(height=LINE, spacing=4):
                ui.Label("env", width=40)
                self._env = ui.IntField(width=60)
                self._env.model.add_end_edit_fn(self._on_env_typed)
                ui.Button("-", width=LINE, clicked_fn=partial(self._step_env, -1))
                ui.Button("+", width=LINE, clicked_fn=partial(self._step_env, 1))
                self._num_envs = ui.Label("", width=70)
                box = ui.CheckBox(width=LINE)
                box.model.set_value(panel.color_links)
                box.model.add_value_changed_fn(self._on_color_links)
                ui.Label("color faulty links:", width=150)
                for text, color in LEGEND:
                    ui.Rectangle(width=SWATCH, style={"background_color": packed(color)})
                    ui.Label(text, width=70)
                ui.Spacer()
            self._choices = ui.HStack(height=LINE, spacing=4)
            with ui.HStack(height=LINE, spacing=4):
                ui.Spacer(width=SWATCH)
                for text, width in zip(HEADINGS, COLUMNS, strict=True):
                    ui.Label(text, width=width)
            with ui.ScrollingFrame():
                self._table = ui.VStack(height=0, spacing=2)
            self._message = ui.Label("", height=LINE)
            self._note = ui.Label("", height=LINE)
        self.update("")

    def destroy(self) -> None:
        """Close the window for good."""
        self._cells = []
        self._window.destroy()

    def toggle(self) -> None:
        """Show or hide the window."""
        self._window.visible = not self._window.visible

    def update(self, note: str) -> None:
        """Show the state of the panel and a note about colors in the viewport."""
        panel = self._panel
        if self._built_for != (panel.joints, panel.kinds):
            self._built_for = (panel.joints, panel.kinds)
            self._build()
        self._title.text = panel.title
        self._num_envs.text = f"of {panel.num_envs}"
        for row, (swatch, labels, heal) in zip(panel.rows, self._cells, strict=False):
            color = NOTHING if row.color is None else packed(row.color)
            swatch.set_style({"background_color": color})
            for label, text in zip(labels, row.cells, strict=True):
                label.text = text
            heal.enabled = row.color is not None
        self._message.text = panel.message
        self._message.set_style({"color": ERROR if panel.is_error else QUIET})
        self._note.text = note

    def _build(self) -> None:
        """Build what depends on the robot: the choice of faults, and the table."""
        panel = self._panel
        self._env.model.set_value(panel.env_id)
        self._choices.clear()
        self._table.clear()
        self._cells = []
        with self._choices:
            if panel.kinds:
                ui.Label("fault", width=40)
                kinds = ui.ComboBox(panel.kinds.index(panel.kind), *panel.kinds, width=140)
                kinds.model.add_item_changed_fn(self._on_kind)
                ui.Label("severity", width=65)
                self._severity = ui.StringField(width=90)
                ui.Label("(empty: the usual one)", width=175)
                ui.Button("heal all joints", width=120, clicked_fn=panel.clear)
            ui.Spacer()
        with self._table:
            for joint in panel.joints:
                with ui.HStack(height=LINE, spacing=4):
                    swatch = ui.Rectangle(width=SWATCH)
                    labels = [ui.Label("", width=width) for width in COLUMNS]
                    ui.Button("break", width=BUTTON, clicked_fn=partial(self._inject, joint))
                    heal = ui.Button("heal", width=BUTTON, clicked_fn=partial(panel.clear, joint))
                    ui.Spacer()
                self._cells.append((swatch, labels, heal))

    def _inject(self, joint: str) -> None:
        self._panel.inject(joint, self._severity.model.get_value_as_string())

    def _step_env(self, step: int) -> None:
        self._panel.select_env(self._panel.env_id + step)
        self._env.model.set_value(self._panel.env_id)

    def _on_env_typed(self, model: Any) -> None:
        self._panel.select_env(model.get_value_as_int())
        model.set_value(self._panel.env_id)

    def _on_color_links(self, model: Any) -> None:
        self._panel.color_links = model.get_value_as_bool()

    def _on_kind(self, model: Any, item: Any) -> None:
        self._panel.select_kind(model.get_item_value_model().get_value_as_int())
