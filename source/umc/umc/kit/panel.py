# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The panel as data and commands; a window shows its fields and calls its methods."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from umc.kit.colors import Color, color_of
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from umc.mdp.fault_board import FaultBoard, JointRow

NO_TASK = "no task with UMC's faults is running"
"""Title without an environment."""

HEADINGS = ("joint", "fault", "severity", "detected", "since")
"""Columns of the table."""


LAST_MADE = "curriculum_manager"
"""Attribute that an environment of Isaac Lab gets last and loses on ``close``: with it, it is ready."""


def find_env() -> Any | None:
    """Return the newest environment with UMC's fault terms; None if there is none, or it is not ready or closed.

    It does not import ``umc.mdp``, which would load Isaac Lab into every Kit that has the extension enabled.
    """
    mdp: Any = sys.modules.get("umc.mdp.events")
    env = None if mdp is None else mdp.newest_env()
    return env if hasattr(env, LAST_MADE) else None


def task_name(env: Any) -> str:
    """Return an environment's Gymnasium id, or the name of its config if it was made without ``gym.make``."""
    spec = getattr(env, "spec", None)
    return type(env.cfg).__name__ if spec is None else spec.id


@dataclass(frozen=True)
class PanelRow:
    """A line of the table."""

    joint: str
    """Name of the joint."""
    cells: tuple[str, ...]
    """Texts in the order of :data:`HEADINGS`."""
    color: Color | None
    """Color of its fault; None if it is healthy."""


class FaultPanel:
    """What the panel shows of the running environment, and what its buttons do.

    Errors of the user become a :attr:`message`: Kit would only log an exception.

    Args:
        find: Finds the running environment.
        make_board: Makes the board of an environment; :class:`umc.mdp.FaultBoard` if not given.
    """

    def __init__(
        self, find: Callable[[], Any | None] = find_env, make_board: Callable[[Any], FaultBoard] | None = None
    ) -> None:
        self._find = find
        self._make_board = make_board or _fault_board
        self._board: FaultBoard | None = None
        self._rows: Sequence[JointRow] = ()
        self.env: Any | None = None
        """The environment, if there is one."""
        self.env_id = 0
        """Env whose joints are listed."""
        self.kind = ""
        """Kind of fault of :meth:`inject`; empty without an environment."""
        self.color_links = True
        """Whether links of faulty joints are colored in the viewport."""
        self.message = ""
        """What the last command did, or why it failed."""
        self.is_error = False
        """Whether it failed."""

    @property
    def title(self) -> str:
        """The running task."""
        return NO_TASK if self._board is None else task_name(self.env)

    @property
    def num_envs(self) -> int:
        """Number of envs; 0 without an environment."""
        return 0 if self._board is None else self._board.num_envs

    @property
    def joints(self) -> tuple[str, ...]:
        """Joints of the robot; none without an environment."""
        return () if self._board is None else self._board.joint_names

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of faults to choose from; none without an environment."""
        return () if self._board is None else self._board.kinds

    @property
    def rows(self) -> list[PanelRow]:
        """The table, as of the last :meth:`refresh`; a line per joint."""
        return [PanelRow(row.joint, _cells(row), color_of(row.kinds)) for row in self._rows]

    @property
    def link_colors(self) -> dict[str, Color]:
        """Colors of the links behind the faulty joints by name; none without :attr:`color_links`."""
        if not self.color_links:
            return {}
        colors = {row.link: color_of(row.kinds) for row in self._rows}
        return {link: color for link, color in colors.items() if color is not None}

    def refresh(self) -> None:
        """Find the running environment and read its faults."""
        env = self._find()
        if env is not self.env:
            self._look_at(env)
        if self._board is None:
            return
        try:
            self._rows = self._board.rows(self.env_id)
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
        """Break a joint of the selected env from the next step on; an empty severity is the board's first one."""
        done = f"env {self.env_id}: {joint} gets '{self.kind}' with the next step"
        self._do(lambda board: board.inject(self.env_id, joint, self.kind, _number(severity)), done)

    def clear(self, joint: str | None = None) -> None:
        """Heal a joint of the selected env, or all of them, from the next step on."""
        done = f"env {self.env_id}: {joint or 'every joint'} is healed with the next step"
        self._do(lambda board: board.clear(self.env_id, joint), done)

    def _do(self, command: Callable[[FaultBoard], None], done: str) -> None:
        if self._board is None:
            self._say(NO_TASK, is_error=True)
            return
        try:
            command(self._board)
        except UmcError as error:
            self._say(str(error), is_error=True)
        else:
            self._say(done)

    def _look_at(self, env: Any | None) -> None:
        self.env, self._board, self._rows, self.kind = env, None, (), ""
        self._say("")
        if env is None:
            return
        try:
            self._board = self._make_board(env)
        except UmcError as error:
            self._say(str(error), is_error=True)
            return
        self.env_id = max(0, min(self.env_id, self._board.num_envs - 1))
        self.kind = self._board.kinds[0] if self._board.kinds else ""

    def _say(self, message: str, is_error: bool = False) -> None:
        self.message, self.is_error = message, is_error


def _fault_board(env: Any) -> FaultBoard:
    """Import Isaac Lab late, when the environment has loaded it."""
    from umc.mdp.fault_board import FaultBoard

    return FaultBoard(env)


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
