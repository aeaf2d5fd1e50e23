# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The controls of the page: faults of each joint, buttons to break and heal it, plots, attention map."""

from __future__ import annotations

import itertools
import math
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

import torch

from umc.evaluation.breakdown import scenario_name
from umc.faults import SCENARIOS, find_kind
from umc.mdp import FaultInjector, JointRow, SeverityRange, fault_state
from umc.rendering.colors import color_of, rgb
from umc.utils.errors import UmcError
from umc.viewer.attention_map import AttentionMap
from umc.viewer.plots import History, Plots, html_table, measure
from umc.viewer.steering import Steering

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv
    from tensordict import TensorDict

    from umc.rl.policy import Policy

ALL_BLOCKS = "mean of all"
NO_POLICY = "No policy, no attention: give a --checkpoint."
NO_ATTENTION = "This policy is no transformer: it has no attention to show."

SLIDER_STEPS = 100
"""Approximate number of severities that a slider offers."""

ROUNDING = 1e-6
"""Part of a step by which a float may miss a round number."""

TABLE_ID, HEADS = "umc-faults", ("joint", "fault", "severity", "detected", "since")
"""Id of the table in the page, and its columns."""

DETECTOR_HEADS = ("P(sensor)", "P(joint)")
"""Columns of a detector: its probabilities of a sensor fault and of a joint fault."""

FIRST = -10.0
"""Order of the first of these controls: before Isaac Lab's own."""

SIDE_PANEL_WIDTH = 340
"""Width of the panel with plots and attention map [px]."""


class Panel:
    """The page's controls, for one env at a time.

    Callbacks of the page run in threads of their own and only queue what to do; :meth:`do_clicks` does it. The slider
    is replaced at once: a move before the next step would be lost otherwise.
    """

    def __init__(
        self, server: Any, env: ManagerBasedRLEnv, injector: FaultInjector, title: str, policy: Policy | None
    ) -> None:
        self._env, self._injector, self._policy = env, injector, policy
        self._state = fault_state(env)
        # read here, in the simulation's own thread
        pairs = itertools.product(injector.joint_names, injector.kinds)
        self._ranges = {pair: injector.severity_range(*pair) for pair in pairs}
        self._slider = threading.Lock()
        self._moved: tuple[int, str, str, float] | None = None
        self._moved_before = self._moved
        self._clicks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._time = 0.0
        self._table_text = ""
        self._history = History(env.step_dt)
        self.env_id = 0
        """Env that is shown."""
        self.scenario: int | None = None
        """Scenario whose button has been pressed; whoever resets the episode sets it back to None."""
        # what the simulation's thread has last read, for the page's threads
        self._rows = injector.rows(self.env_id)
        self._gui = gui = server.gui
        gui.configure_theme(control_width="large", show_logo=False, show_share_button=False)
        gui.set_panel_label("UMC")
        gui.add_markdown(f"**{title}**", order=FIRST)
        self._folder = gui.add_folder("Faults", order=FIRST + 1)
        with self._folder:
            self._add_faults(gui)
        self._set_slider()
        with gui.add_folder("Scenarios", order=FIRST + 2):
            labels = {f"{number} {scenario_name(number)}": number for number in SCENARIOS}
            buttons = gui.add_button_group("New episode", list(labels))
            buttons.on_click(lambda event: self._later(self._start, labels[event.target.value]))
        with gui.add_folder("Walk", order=FIRST + 3):
            Steering(gui, env, self._later, lambda: self.env_id)
        with gui.add_folder("View", order=FIRST + 4):
            self._add_view(gui)
        aside = gui.add_panel()
        with aside.add_tab("Joint"):
            self._plots = Plots(gui)
        with aside.add_tab("Attention"):
            self._add_attention(gui)
        gui.main_panel.dock_right()
        aside.dock_left()
        aside.set_width(SIDE_PANEL_WIDTH)

    def say(self, line: str) -> None:
        """Show a line above the table; an empty one removes the last."""
        self._line.content = f"*{line}*" if line else ""
        self._line.visible = bool(line)

    def do_clicks(self) -> None:
        """Do what has been clicked since the last call; show errors in the page."""
        while True:
            try:
                click = self._clicks.get_nowait()
            except queue.Empty:
                return
            self.say("")
            try:
                click()
            except UmcError as error:
                self.say(f"{error}")

    def record(self) -> None:
        """Add the last env step to the plots."""
        self._time += self._env.step_dt
        self._history.add(self._time, measure(self._env, self.env_id))

    def refresh(self, obs: TensorDict | None) -> None:
        """Update table, plots and, from the observations of the last action, the attention map."""
        self._change_moved()
        self._rows = self._injector.rows(self.env_id)
        text = table(self._rows, self._selected.value)
        if text != self._table_text:
            self._table.content = self._table_text = text
        self._plots.show(self._history.of(self._injector.joint_names.index(self._selected.value)))
        if self._map is not None and obs is not None and self._policy is not None:
            self._draw_attention(obs)

    @property
    def follows(self) -> bool:
        """Whether the camera follows the robot."""
        return self._follow.value

    def _add_view(self, gui: Any) -> None:
        if self._injector.num_envs > 1:
            envs = gui.add_dropdown("Env", [str(number) for number in range(self._injector.num_envs)])
            envs.on_update(lambda event: self._later(self._show_env, int(event.target.value)))
        self._follow = gui.add_checkbox("Follow", initial_value=True, hint="The camera follows the robot")

    def _add_faults(self, gui: Any) -> None:
        self._line = gui.add_markdown("", visible=False)
        self._table = gui.add_html("")
        self._selected = gui.add_dropdown("Joint", self._injector.joint_names)
        self._kind = gui.add_dropdown("Fault", self._injector.kinds)
        self._severity = gui.add_slider("Severity", 0.0, 1.0, 1.0, 0.0)  # a placeholder
        self._hint = gui.add_markdown("")
        break_it = gui.add_button("Break", color="red", hint="The joint has this fault from the next step on")
        heal_it = gui.add_button("Heal this joint", color="green")
        heal_all = gui.add_button("Heal all", color="green")
        self._selected.on_update(lambda _: self._set_slider())
        self._kind.on_update(lambda _: self._set_slider())
        # read the choice at the click, not when it is done
        break_it.on_click(lambda _: self._later(self._inject, *self._chosen()))
        heal_it.on_click(lambda _: self._later(self._injector.clear, self.env_id, self._selected.value))
        heal_all.on_click(lambda _: self._later(self._injector.clear, self.env_id))

    def _later(self, act: Callable[..., None], *arguments: Any) -> None:
        self._clicks.put(lambda: act(*arguments))

    def _chosen(self) -> tuple[str, str, float]:
        with self._slider:
            return self._selected.value, self._kind.value, self._severity.value

    def _start(self, scenario: int) -> None:
        self.scenario = scenario

    def _inject(self, joint: str, kind: str, severity: float) -> None:
        self._injector.inject(self.env_id, joint, kind, severity if find_kind(kind).unit else None)

    def _slide(self, event: Any) -> None:
        """Change the severity of a fault that is on; one that is not waits for its button."""
        if event.target is self._severity:  # else another joint or kind has been chosen since
            chosen = (self.env_id, *self._chosen())  # another env may be shown before the slider rests
            with self._slider:
                self._moved = chosen

    def _change_moved(self) -> None:
        """Change the fault once its slider rests: all values on the way would use up the faults of an episode."""
        with self._slider:
            moved = self._moved
            if moved is not None and moved == self._moved_before:
                self._later(self._change, *moved)
                self._moved = None
            self._moved_before = self._moved

    def _change(self, env_id: int, joint: str, kind: str, severity: float) -> None:
        if kind in self._injector.rows(env_id)[self._injector.joint_names.index(joint)].kinds:
            self._injector.inject(env_id, joint, kind, severity)

    def _set_slider(self) -> None:
        """Create the slider for the chosen joint and kind, at the severity of a fault that is on.

        It is a new one each time: the number box beside a slider of viser 1.1 loses the next number that is pasted
        into it when the range and decimals of the slider change.
        """
        with self._slider:
            joint, kind = self._selected.value, self._kind.value
            bounds = self._ranges[joint, kind]
            if bounds is None:
                self._severity.visible = False
            else:
                row = self._rows[self._injector.joint_names.index(joint)]
                if kind in row.kinds:
                    bounds = replace(bounds, initial=row.severities[row.kinds.index(kind)])
                order = self._severity.order
                self._severity.remove()
                with self._folder:
                    self._severity = self._gui.add_slider("Severity", *slider_range(bounds), order=order)
                self._severity.on_update(self._slide)
            # last: where the page names the kind, the slider is the kind's
            self._hint.content = f"`{kind}`" + ("" if bounds is None else f" severity [{bounds.unit}]")

    def _show_env(self, env_id: int) -> None:
        self.env_id = env_id
        self._rows = self._injector.rows(env_id)
        self._history.clear()
        self._set_slider()

    def _add_attention(self, gui: Any) -> None:
        self._map: AttentionMap | None = None
        self._actor: Any = getattr(self._policy, "actor", None)  # policies of others have none
        blocks = len(getattr(getattr(self._actor, "core", None), "blocks", ()))
        if not blocks:
            gui.add_markdown(NO_POLICY if self._policy is None else NO_ATTENTION)
            return
        self._map = AttentionMap(self._actor.layout.joint_names)
        self._block = gui.add_dropdown("Block", [ALL_BLOCKS, *(str(number + 1) for number in range(blocks))])
        gui.add_markdown("Each row is a token: the darker a cell, the more attention it gives to that column.")
        tokens = self._actor.layout.num_joints
        blank = torch.zeros(tokens + 1, tokens + 1).numpy()
        self._picture = gui.add_image(self._map.draw(blank, [False] * tokens), format="png")

    def _draw_attention(self, obs: TensorDict) -> None:
        assert self._map is not None
        maps = self._actor.attention(obs[self.env_id : self.env_id + 1])
        assert maps is not None  # it has blocks
        chosen = self._block.value
        maps = maps[:, 0].mean(1)  # heads
        shares = maps.mean(0) if chosen == ALL_BLOCKS else maps[int(chosen) - 1]
        self._picture.image = self._map.draw(shares.cpu().numpy(), self._state.joint_mask[self.env_id].tolist())


def slider_range(bounds: SeverityRange) -> tuple[float, float, float, float]:
    """Return min, max, step and first value of a slider: round numbers within the range, which its number box can show.

    The step is a power of ten, about ``1 / SLIDER_STEPS`` of the range; 1 for a number of env steps.
    """
    exponent = 0 if bounds.unit == "env steps" else math.floor(math.log10((bounds.high - bounds.low) / SLIDER_STEPS))
    step = 10.0**exponent

    def rounded(steps: float) -> float:
        return round(steps * step, max(0, -exponent))

    low = rounded(math.ceil(bounds.low / step - ROUNDING))
    high = rounded(math.floor(bounds.high / step + ROUNDING))
    return low, high, step, min(max(rounded(round(bounds.initial / step)), low), high)


def table(rows: Sequence[JointRow], selected: str) -> str:
    """Return the faults of all joints as HTML, with the row of the selected joint in bold.

    Where a detector watches, each row also has its probabilities of a sensor fault and of a joint fault.
    """
    lines, watched = [], any(row.fault_probability is not None for row in rows)
    for row in rows:
        found = color_of(row.kinds)
        color = "inherit" if found is None else "rgb({}, {}, {})".format(*rgb(found))
        weight = "bold" if row.joint == selected else "normal"
        cells = (
            row.joint.removesuffix("_joint"),
            ", ".join(row.kinds) or "healthy",
            row.severity,
            ("yes" if row.detected else "no") if row.kinds else "",
            "" if row.since is None else f"{row.since:.2f} s",
            *(() if row.fault_probability is None else (f"{one:.0%}" for one in row.fault_probability)),
        )
        lines.append((f'data-joint="{escape(row.joint)}" style="color:{color};font-weight:{weight}"', cells))
    return html_table(TABLE_ID, "left", (*HEADS, *DETECTOR_HEADS) if watched else HEADS, lines)
