# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Turns observation terms of any task into terms whose sensors can fail, in every variant that a preset offers."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast

from isaaclab.envs import mdp as lab
from isaaclab.managers import ActionTermCfg, ObservationTermCfg, SceneEntityCfg
from isaaclab.utils.noise import NoiseCfg
from isaaclab.utils.string import string_to_callable
from isaaclab_tasks.utils import PresetCfg

from umc.faults.kinds import ACTION, ANGULAR_VELOCITY, GRAVITY, POSITION, VELOCITY
from umc.mdp.observations import IMU_QUANTITIES, QUANTITIES, entries, imu_sensor, joint_sensor
from umc.utils.errors import UmcError

UNSUPPORTED_TERMS = (lab.joint_pos_limit_normalized, lab.joint_effort)
"""Isaac Lab's terms that show a policy the joints in units for which there are no faults."""

UNKNOWN = "unknown"
"""Quantity of :data:`UNSUPPORTED_TERMS`."""

JOINT_ACTIONS = (lab.JointActionCfg, lab.JointPositionToLimitsActionCfg)
"""Action terms with one action per joint."""


def variants(cfg: Any, name: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield a mapping and the key under which it holds each variant of a cfg's entry.

    One, or one per choice of a preset. Raises UmcError if a preset keeps its choices where changes would be shared
    between tasks.
    """
    holder = entries(cfg)
    if not isinstance(holder.get(name), PresetCfg):
        yield holder, name
        return
    choice = holder[name]
    for option in fields(choice):
        if getattr(type(choice), option.name, None) is not None:
            raise UmcError(f"the preset '{name}' belongs to its class; choose with resolve_presets, then add faults")
        yield from variants(choice, option.name)


def wrap_terms(group: Any, name: str, wrap: Callable[[Any, str], ObservationTermCfg | None]) -> Any:
    """Return a copy of a group with the terms that ``wrap`` makes of a term and its name; None if it makes none."""
    group, found = copy.deepcopy(group), False
    for term in list(entries(group)):
        for holder, key in variants(group, term):
            wrapped = wrap(holder[key], f"{name}/{term}")
            if wrapped is not None:
                holder[key], found = wrapped, True
    return group if found else None


def as_sensor(
    term: ObservationTermCfg, sensor: type, func: Callable[..., Any], quantity: str, params: dict[str, Any], where: str
) -> ObservationTermCfg:
    """Return a term whose sensor can fail, in place of one that shows ``func``; UmcError if it cannot become one."""
    if term.noise is not None and not isinstance(term.noise, NoiseCfg | PresetCfg):
        raise UmcError(f"observation '{where}' has a noise model with a state; a sensor that can fail needs a NoiseCfg")
    if isinstance(func, type):
        raise UmcError(f"observation '{where}': {func.__name__} is a class; a sensor that can fail needs a function")
    if term.modifiers:
        raise UmcError(f"observation '{where}' has modifiers, which would act on dead sensors; put them into its func")
    wrapped = copy.copy(term)
    wrapped.func, wrapped.noise = cast(Any, sensor), None
    wrapped.params = {"func": func, "noise": term.noise, "quantity": quantity}
    if params:
        wrapped.params["func_params"] = dict(params)
    return wrapped


@dataclass
class SensorWrapper:
    """Wrapper of the observations of a robot in :class:`joint_sensor` and :class:`imu_sensor` terms."""

    asset_name: str
    own: Mapping[Callable[..., Any], str | None]
    """The quantities that the user gives for further functions."""
    actions: list[tuple[str, ActionTermCfg]]
    """All action terms."""
    imu: bool = False
    """Whether Isaac Lab's own terms of the base can fail; those in ``own`` always can."""
    has_imu: bool = False
    """Whether an IMU was found."""
    selections: dict[str, SceneEntityCfg | None] = field(default_factory=dict)
    """Joints that position and velocity terms report, each selection once; None for all."""

    def wrap_group(self, group: Any, name: str) -> Any:
        """Return a copy of a group whose joint sensors can fail; raises UmcError if it has none that can."""
        changed = wrap_terms(group, name, self.wrap_term)
        if changed is None:
            known = ", ".join(func.__name__ for func in QUANTITIES)
            raise UmcError(
                f"observation group '{name}' has no joint observation of '{self.asset_name}' ({known}); name others"
                " by quantities={function: 'position'}, or leave the group out"
            )
        return changed

    def wrap_term(self, term: Any, where: str) -> ObservationTermCfg | None:
        """Return a new term whose sensor can fail; None for a term that is no sensor of the robot."""
        if not isinstance(term, ObservationTermCfg):
            return None
        func = cast(Callable[..., Any], string_to_callable(term.func) if isinstance(term.func, str) else term.func)
        if func is joint_sensor:
            raise UmcError(f"observation '{where}' is a joint_sensor already; faults have been added to this task")
        known = {**dict.fromkeys(UNSUPPORTED_TERMS, UNKNOWN), **QUANTITIES, **(IMU_QUANTITIES if self.imu else {})}
        quantity = {**known, **self.own}.get(func)
        is_imu = quantity in IMU_QUANTITIES.values()
        selection = term.params.get("asset_cfg") or default_asset(func)
        own_imu = is_imu and func in self.own  # its asset may be an ImuCfg of the scene
        if quantity is None or (selection is not None and selection.name != self.asset_name and not own_imu):
            return None
        if is_imu:
            self.has_imu = True
            return as_sensor(term, imu_sensor, func, quantity, term.params, where)
        return self._wrap_joints(term, func, quantity, where)

    def _wrap_joints(self, term: Any, func: Callable[..., Any], quantity: str, where: str) -> ObservationTermCfg | None:
        """Return a new term of the robot's joints; None for a last action of other joints."""
        params: dict[str, Any] = dict(term.params)
        given = params.pop("asset_cfg", None)
        selection = given or default_asset(func)
        if func is lab.last_action:
            names = self._action_terms(params.get("action_name"), where)
            if not names:
                return None
            selection = self._joints_of(names)
        _check_quantity(func, quantity, where)
        wrapped = as_sensor(term, joint_sensor, func, quantity, params, where)
        if given is None and selection is not None and func is not lab.last_action:
            # a default that names joints is what the term shows, and Isaac Lab resolves it
            selection = copy.deepcopy(selection) if selection != SceneEntityCfg(selection.name) else None
        if quantity != ACTION:
            shown = selection and (selection.joint_names, selection.joint_ids, selection.preserve_order)
            self.selections[repr(shown)] = selection
        if selection is not None:
            wrapped.params["asset_cfg"] = selection
        return wrapped

    def _action_terms(self, wanted: str | None, where: str) -> list[lab.JointActionCfg]:
        """Return the joint actions that a last_action reports, in its order; none if they are not the robot's."""
        terms = [(name, term) for name, term in self.actions if wanted in (None, name)]
        if not terms:
            raise UmcError(f"observation '{where}' asks for the action '{wanted}', which the task does not have")
        ours = [isinstance(term, JOINT_ACTIONS) and term.asset_name == self.asset_name for _, term in terms]
        if not any(ours):
            return []
        if not all(ours):
            foreign = ", ".join(f"'{name}'" for (name, _), mine in zip(terms, ours, strict=True) if not mine)
            raise UmcError(
                f"observation '{where}' reports all actions, and {foreign} is no joint action of '{self.asset_name}';"
                " give each action term its own observation by params={'action_name': ...}, or keep true values by"
                " quantities={last_action: None}"
            )
        return [cast(lab.JointActionCfg, term) for _, term in terms]

    def _joints_of(self, terms: list[lab.JointActionCfg]) -> SceneEntityCfg | None:
        """Return the joints of action terms, one term after the other; None for all joints in the robot's order."""
        patterns: list[str] = []
        for term in terms:
            names = [term.joint_names] if isinstance(term.joint_names, str) else list(term.joint_names)
            # one pattern keeps the robot's order, several have that of the patterns
            patterns += names if term.preserve_order else ["|".join(f"(?:{name})" for name in names)]
        if patterns == ["(?:.*)"] or patterns == [".*"]:
            return None
        return SceneEntityCfg(self.asset_name, joint_names=patterns, preserve_order=True)


def _check_quantity(func: Callable[..., Any], quantity: str, where: str) -> None:
    """Raise UmcError for a joint observation that is no position, velocity or action."""
    if quantity not in (POSITION, VELOCITY, ACTION):
        raise UmcError(
            f"observation '{where}' shows joints through {func.__name__}: set quantities={{{func.__name__}: "
            f"'{POSITION}'}}, '{VELOCITY}' or '{ACTION}' if it reports rad, rad/s or actions, '{ANGULAR_VELOCITY}' or "
            f"'{GRAVITY}' of an IMU, or None to keep its true values"
        )


def action_terms(env_cfg: Any) -> list[tuple[str, ActionTermCfg]]:
    """Return all action terms of a task by name; raises UmcError if presets offer actions of different joints."""
    found: list[list[tuple[str, ActionTermCfg]]] = []
    for holder, key in variants(env_cfg, "actions"):
        choices: list[list[tuple[str, ActionTermCfg]]] = [[]]
        for name in entries(holder[key]):
            terms = [at[of] for at, of in variants(holder[key], name)]
            named = [(name, term) for term in terms if isinstance(term, ActionTermCfg)]
            choices = [[*choice, one] for choice in choices for one in named] if named else choices
        found += choices
    if len({repr([_joints(name, term) for name, term in terms]) for terms in found}) > 1:
        raise UmcError("presets offer actions of different joints; choose with resolve_presets, then add faults")
    return found[0] if found else []


def _joints(name: str, term: ActionTermCfg) -> tuple[Any, ...]:
    kind = isinstance(term, JOINT_ACTIONS)
    return name, term.asset_name, kind, getattr(term, "joint_names", None), getattr(term, "preserve_order", None)


def default_asset(func: Callable[..., Any]) -> SceneEntityCfg | None:
    """Return the asset that an observation function shows unless a parameter names another."""
    parameter = inspect.signature(func).parameters.get("asset_cfg")
    return parameter.default if parameter is not None and isinstance(parameter.default, SceneEntityCfg) else None
