# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The panel as data and commands; a window shows its fields and calls its methods."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from umc.rendering.colors import COMMAND_COLOR, FAULT_COLOR, SENSOR_COLOR, Color, color_of
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from umc.mdp.fault_injector import FaultInjector, JointRow

NO_TASK = "no task with UMC's faults is running"
"""Title without an environment."""

HEADINGS = ("joint", "fault", "severity", "detected", "since")
"""Columns of the table."""

LEGEND = (("joint", FAULT_COLOR), ("sensor", SENSOR_COLOR), ("command", COMMAND_COLOR))
"""Meaning of the colors."""

READY_ATTRIBUTE = "curriculum_manager"
"""Attribute that an environment of Isaac Lab gets last and loses on ``close``: with it, it is ready."""


def find_env() -> Any | None:
    """Return the newest environment with UMC's fault terms; None if there is none, or it is not ready or closed.

    It does not import ``umc.mdp``, which would load Isaac Lab into every Kit that has the extension enabled.
    """
    events: Any = sys.modules.get("umc.mdp.events")
    env = None if events is None else events.newest_env()
    return env if hasattr(env, READY_ATTRIBUTE) else None


def task_name(env: Any) -> str:
    """Return an environment's Gymnasium id, or the name of its config if it was made without ``gym.make``."""
    spec = getattr(env, "spec", None)
    return type(env.cfg).__name__ if spec is None else spec.id


def _without_imu(kinds: Sequence[str]) -> list[str]:
    """Return the faults of a joint and its link: the base's sensor has none."""
    from umc.faults import find_kind
    from umc.faults.kinds import ImuKind

    return [name for name in kinds if not isinstance(find_kind(name), ImuKind)]


@dataclass(frozen=True)
class PanelRow:
    """A line of the table."""

    joint: str
    cells: tuple[str, ...]
    """Texts in the order of :data:`HEADINGS`."""
    color: Color | None
    """Color of its fault; None if it is healthy."""


class FaultPanel:
    """Fault panel: what it shows of the running environment, and what its buttons do.

    Errors of the user become a :attr:`message`: Kit would only log an exception.

    Args:
        find: Finds the running environment.
        make_injector: Makes the injector of an environment; :class:`umc.mdp.FaultInjector` if not given.
    """

    def __init__(
        self, find: Callable[[], Any | None] = find_env, make_injector: Callable[[Any], FaultInjector] | None = None
    ) -> None:
        self._find = find
        self._make_injector = make_injector or _fault_injector
        self.env_id = 0
        """Env whose joints are listed."""
        self.color_links = True
        """Whether links of faulty joints are colored in the viewport."""
        self._open(None)

    @property
    def rows(self) -> list[PanelRow]:
        """The table, as of the last :meth:`refresh`; a line per joint."""
        return [PanelRow(row.joint, _cells(row), color_of(row.kinds)) for row in self._rows]

    @property
    def link_colors(self) -> dict[str, Color]:
        """Colors of the links behind the faulty joints by name; none without :attr:`color_links`."""
        colors = {row.link: color_of(_without_imu(row.kinds)) for row in self._rows if self.color_links}
        return {link: color for link, color in colors.items() if color is not None}

    def refresh(self) -> None:
        """Find the running environment and read its faults."""
        env = self._find()
        if env is not self.env:
            self._open(env)
        if self._injector is not None:
            try:
                self._rows = self._injector.rows(self.env_id)
            except UmcError as error:
                self._say(str(error), is_error=True)

    def select_env(self, env_id: int) -> None:
        """Show another env; numbers past either end mean the last one there."""
        self.env_id = max(0, min(env_id, self.num_envs - 1))
        self.refresh()

    def select_kind(self, number: int) -> None:
        """Choose the kind of fault to inject by its index in :attr:`kinds`; ignore other numbers."""
        if 0 <= number < len(self.kinds):
            self.kind = self.kinds[number]

    def inject(self, joint: str, severity: str = "") -> None:
        """Break a joint of the selected env from the next step on; an empty severity is the initial one."""
        done = f"env {self.env_id}: {joint} gets '{self.kind}' with the next step"
        self._do(lambda injector: injector.inject(self.env_id, joint, self.kind, _number(severity)), done)

    def clear(self, joint: str | None = None) -> None:
        """Heal a joint of the selected env, or all of them, from the next step on."""
        done = f"env {self.env_id}: {joint or 'every joint'} is healed with the next step"
        self._do(lambda injector: injector.clear(self.env_id, joint), done)

    def _do(self, command: Callable[[FaultInjector], None], done: str) -> None:
        if self._injector is None:
            self._say(NO_TASK, is_error=True)
            return
        try:
            command(self._injector)
        except UmcError as error:
            self._say(str(error), is_error=True)
        else:
            self._say(done)

    def _open(self, env: Any | None) -> None:
        """Show an environment, or that there is none."""
        self.env, self._injector = env, None
        self._rows: Sequence[JointRow] = ()
        self._say("")
        if env is not None:
            try:
                self._injector = self._make_injector(env)
            except UmcError as error:
                self._say(str(error), is_error=True)
        injector = self._injector
        self.title = NO_TASK if injector is None else task_name(env)
        self.num_envs = 0 if injector is None else injector.num_envs
        self.joints: tuple[str, ...] = () if injector is None else injector.joint_names
        self.kinds: tuple[str, ...] = () if injector is None else injector.kinds
        self.kind = self.kinds[0] if self.kinds else ""
        """Kind of fault of :meth:`inject`; empty without an environment."""
        if injector is not None:
            self.env_id = max(0, min(self.env_id, injector.num_envs - 1))

    def _say(self, message: str, is_error: bool = False) -> None:
        self.message, self.is_error = message, is_error


def _fault_injector(env: Any) -> FaultInjector:
    """Import Isaac Lab late, when the environment has loaded it."""
    from umc.mdp.fault_injector import FaultInjector

    return FaultInjector(env)


def _cells(row: JointRow) -> tuple[str, ...]:
    if not row.kinds:
        return (row.joint, "", "", "", "")
    since = "" if row.since is None else f"{row.since:.2f} s"
    return (row.joint, ", ".join(row.kinds), row.severity, "yes" if row.detected else "no", since)


def _number(text: str) -> float | None:
    """Convert a severity as typed; None if empty."""
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UmcError(f"severity '{text.strip()}' is not a number; leave it empty for the usual one")
    return value
