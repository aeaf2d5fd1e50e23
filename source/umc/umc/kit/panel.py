# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The panel as data and commands: whoever draws it shows its fields and calls its methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from umc.kit.colors import Color, color_of
from umc.kit.find import find_env, task_name
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from umc.mdp.fault_board import JointRow

NO_TASK = "no task with UMC's faults is running"
"""Title while there is nothing to look at."""

HEADINGS = ("joint", "fault", "severity", "detected", "since")
"""Columns of the table."""


class Board(Protocol):
    """What the panel needs of :class:`umc.mdp.FaultBoard`."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """All joints of the robot."""
        ...

    @property
    def num_envs(self) -> int:
        """Number of envs."""
        ...

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of faults that can be injected."""
        ...

    def rows(self, env_id: int) -> Sequence[JointRow]:
        """What is wrong with the joints of an env now."""
        ...

    def inject(self, env_id: int, joint: str, kind: str, severity: float | None = None) -> None:
        """Breaks a joint."""
        ...

    def clear(self, env_id: int, joint: str | None = None) -> None:
        """Heals a joint, or all of them."""
        ...


@dataclass(frozen=True)
class PanelRow:
    """A line of the table."""

    joint: str
    """Name of the joint."""
    cells: tuple[str, ...]
    """Texts in the order of :data:`HEADINGS`."""
    color: Color | None
    """Colour of its fault; None if it is healthy."""


class FaultPanel:
    """What the panel shows of the running environment, and what its buttons do.

    Mistakes of the user end up in :attr:`message`, not in an exception: Kit would only log it.

    Args:
        find: Finds the running environment.
        make_board: Makes the board of an environment; :class:`umc.mdp.FaultBoard` if not given.
    """

    def __init__(
        self, find: Callable[[], Any | None] = find_env, make_board: Callable[[Any], Board] | None = None
    ) -> None:
        self._find = find
        self._make_board = make_board or _fault_board
        self._board: Board | None = None
        self._rows: Sequence[JointRow] = ()
        self.env: Any | None = None
        """The environment that is looked at; None if there is none."""
        self.env_id = 0
        """The env whose joints are listed."""
        self.kind = ""
        """The kind of fault that :meth:`inject` brings; empty if there is no environment."""
        self.color_links = True
        """Whether links of faulty joints are coloured in the viewport."""
        self.message = ""
        """What the last command did, or why it did not."""
        self.is_error = False
        """Whether it did not."""

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
        """Colours of the links behind the faulty joints of the env, by name; none if links are not to be coloured."""
        if not self.color_links:
            return {}
        colors = {row.link: color_of(row.kinds) for row in self._rows}
        return {link: color for link, color in colors.items() if color is not None}

    def refresh(self) -> None:
        """Looks which environment runs and what is wrong with it now."""
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
        """Shows another env; numbers past either end mean the last one there.

        Args:
            env_id: The env.
        """
        self.env_id = max(0, min(env_id, self.num_envs - 1))
        self.refresh()

    def select_kind(self, number: int) -> None:
        """Chooses what kind of fault is injected.

        Args:
            number: Its place in :attr:`kinds`; other numbers leave the choice as it is.
        """
        if 0 <= number < len(self.kinds):
            self.kind = self.kinds[number]

    def inject(self, joint: str, severity: str = "") -> None:
        """Breaks a joint of the selected env from the next step on.

        Args:
            joint: The joint.
            severity: How hard, in the kind's unit, as typed; empty for what the board starts with.
        """
        if self._board is None:
            self._say(NO_TASK, is_error=True)
            return
        try:
            self._board.inject(self.env_id, joint, self.kind, _number(severity))
        except UmcError as error:
            self._say(str(error), is_error=True)
        else:
            self._say(f"env {self.env_id}: {joint} gets '{self.kind}' with the next step")

    def clear(self, joint: str | None = None) -> None:
        """Heals a joint of the selected env from the next step on.

        Args:
            joint: The joint; all joints if not given.
        """
        if self._board is None:
            self._say(NO_TASK, is_error=True)
            return
        try:
            self._board.clear(self.env_id, joint)
        except UmcError as error:
            self._say(str(error), is_error=True)
        else:
            self._say(f"env {self.env_id}: {joint or 'every joint'} is healed with the next step")

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


def _fault_board(env: Any) -> Board:
    """Imported late: it needs Isaac Lab, which whoever made the environment has loaded."""
    from umc.mdp.fault_board import FaultBoard

    return FaultBoard(env)


def _cells(row: JointRow) -> tuple[str, ...]:
    if not row.kinds:
        return (row.joint, "", "", "", "")
    since = "" if row.since is None else f"{row.since:.2f} s"
    return (row.joint, ", ".join(row.kinds), row.severity, "yes" if row.detected else "no", since)


def _number(text: str) -> float | None:
    """A severity as typed; None if nothing was."""
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UmcError(f"severity '{text.strip()}' is not a number; leave it empty for the usual one")
    return value
