# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Read and validate ``policy.json``, with the standard library alone: a robot's computer may lack pydantic."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Callable

from umc.utils.errors import UmcError, shown
from umc.utils.text import read_json

FORMAT = 3
"""Version of the file that this module reads; 3 carries the joint limits."""

JOINT_FIGURES = ("default_position_rad", "kp_Nm_per_rad", "kd_Nms_per_rad")
"""Figures that every joint has."""

JOINT_LIMITS = ("lower_limit_rad", "upper_limit_rad")
"""Range of a joint; null on a side without one."""

MEASURABLE: Mapping[str, int | None] = {
    "zeros": 0,
    "phase_clock": 2,
    "joint_pos_rel": None,
    "joint_vel_rel": None,
    "last_action": None,
    "base_ang_vel": 3,
    "projected_gravity": 3,
    "generated_commands": 3,
}
"""Functions of observation terms that a robot can measure, and their columns: None for one per joint, 0 for any."""

DIGEST_KEY = "umc_description_sha256"
"""Entry of the ONNX file's metadata that has :func:`digest` of the description it was exported with."""

MEMORY_INPUT = "h_in"
"""Input of a network with memory; ``h_out`` is its output."""

FILES = ("onnx", "torchscript")
"""Parts of the description that describe the files of the network; the ONNX file carries a digest of all others."""

AGAIN = "export the policy again"

LARGEST = 1.0e6
"""Greatest magnitude of a figure: no unit of the file makes a robot's larger."""

MAX_JOINTS = 256
"""Most joints that faults support, too."""

MAX_PATTERN = 200
"""Longest regular expression of body names."""

Check = Callable[[Any, str], None]
"""Raises _Invalid unless a value (first) at a place in the file (second) is valid."""


class _Invalid(Exception):
    """A place of the file and what is wrong there."""


def description_file(policy: Path | str) -> Path:
    """Return the path of a policy's description, given its folder, the description or the ONNX file beside it."""
    if not isinstance(policy, (str, Path)):
        raise UmcError(f"the exported policy is {shown(policy)}; give the path of a folder that umc export wrote")
    path = Path(policy)
    if os.path.isdir(path):
        return path / "policy.json"
    if path.suffix not in {".json", ".onnx"}:
        where = shown(str(path))
        raise UmcError(f"{where} is no exported policy; export it with umc export and give that folder, .json or .onnx")
    return path.with_suffix(".json")


def read_description(path: Path) -> dict[str, Any]:
    """Read an exported ``policy.json``; UmcError if it is not valid, or the runner cannot feed the policy."""
    if not os.path.isfile(path):
        raise UmcError(f"no exported policy at {shown(str(path))}; make one with umc export")
    content = read_json(path, AGAIN)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UmcError(f"{shown(str(path))} does not have format {FORMAT}; {AGAIN}")
    validate(content, shown(str(path)), AGAIN)
    return content


def validate(content: Mapping[str, Any], where: str, fix: str) -> None:
    """Raise UmcError, with ``where`` before and ``fix`` after it, for content that a runner would refuse."""
    try:
        _FILE(content, "")
        _validate_parts(content)
        if [joint["name"] for joint in content["joints"]] != content["trained"]["joint_names"]:
            raise _Invalid("joints and trained.joint_names differ")
    except _Invalid as error:
        raise UmcError(f"{where}: {error}; {fix}") from error


def validate_task(content: Mapping[str, Any]) -> None:
    """Raise UmcError for what follows from a task's cfg alone, if :func:`validate` would refuse it."""
    try:
        _table(_TASK)(content, "")
        _validate_parts(content)
    except _Invalid as error:
        fix = "correct the task's cfg, where what only a critic or a teacher reads belongs in another group"
        raise UmcError(f"{error}; {fix}") from error


def digest(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a description without the parts in :data:`FILES`."""
    parts = {name: value for name, value in content.items() if name not in FILES}
    return hashlib.sha256(json.dumps(parts, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _number(low: float = -LARGEST, high: float = LARGEST, above: bool = False, whole: bool = False) -> Check:
    """Check that a value is a number from low to high; with ``above``, greater than low."""
    kind = "a whole number" if whole else "a number"
    words = f"{kind} {'above' if above else 'from'} {low:g} {'up ' if above else ''}to {high:g}"

    def check(value: Any, place: str) -> None:
        right_type = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        if not right_type or not low <= value <= high or (above and value == low):  # NaN compares False
            raise _Invalid(f"{place} has to be {words}")

    return check


def _text(pattern: str = r".{0,1000}", words: str = "text of up to 1000 characters") -> Check:
    compiled = re.compile(pattern)

    def check(value: Any, place: str) -> None:
        if not isinstance(value, str) or compiled.fullmatch(value) is None:
            raise _Invalid(f"{place} has to be {words}")

    return check


def _pattern(value: Any, place: str) -> None:
    """Check a regular expression of body names."""
    try:
        if not isinstance(value, str) or len(value) > MAX_PATTERN:
            raise _Invalid(f"{place} has to be a regular expression of up to {MAX_PATTERN} characters")
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise _Invalid(f"{place} is no regular expression ({shown(str(error))})") from error


def _list(check: Check, least: int = 0, most: int = 1000) -> Check:
    length = f"{least}" if least == most else f"{least} to {most}"

    def run(value: Any, place: str) -> None:
        if not isinstance(value, list) or not least <= len(value) <= most:
            raise _Invalid(f"{place} has to be a list of {length} entries")
        for number, entry in enumerate(value):
            check(entry, f"{place}.{number}")

    return run


def _maybe(check: Check) -> Check:
    """Accept null, too."""

    def run(value: Any, place: str) -> None:
        if value is not None:
            check(value, place)

    return run


def _table(checks: Mapping[str, Check], optional: Collection[str] = ()) -> Check:
    """Check an object: every key is there unless it is optional, and no other."""

    def run(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise _Invalid(f"{place} has to be an object")
        missing = [name for name in checks if name not in value and name not in optional]
        unknown = [name for name in value if name not in checks]
        if missing or unknown:
            words = f"lacks {missing[0]}" if missing else f"has the unknown key {shown(unknown[0])}"
            raise _Invalid(f"{place or 'the file'} {words}")
        for name, entry in value.items():
            checks[name](entry, f"{place}.{name}" if place else name)

    return run


def _range(value: Any, place: str) -> None:
    """Check a pair, lowest first."""
    _list(_number(), 2, 2)(value, place)
    if value[0] > value[1]:
        raise _Invalid(f"{place} has its larger value first")


def _scale(value: Any, place: str) -> None:
    """Check an observation's scale: one factor, or one per column."""
    (_list(_number(), 1) if isinstance(value, list) else _number())(value, place)


def _normal(value: Any, place: str) -> None:
    """Check a mean and a standard deviation."""
    _list(_number(), 2, 2)(value, place)
    _number(0.0)(value[1], f"{place}.1")


def _noise(value: Any, place: str) -> None:
    """Check the distribution of a term's noise, or the name of a noise that has no such form."""
    _table(_NOISES, optional=_NOISES)(value, place)
    if len(value) != 1:
        raise _Invalid(f"{place} has to have one of {', '.join(_NOISES)}")


_TEXT, _NUMBER = _text(), _number()
_COUNT = _number(0, LARGEST, whole=True)
_NAME = _text(r"[^/\\\x00-\x1f]{1,200}(?<!^\.)(?<!^\.\.)", "a name without slashes")
_SHA256 = _text(r"[0-9a-f]{64}", "a SHA-256 in hexadecimal")
_GAIN = _number(0.0)
_POSITIVE = _number(0.0, above=True)
_DT = _number(0.0, 1.0, above=True)
_PER_JOINT = _list(_NUMBER, 1, MAX_JOINTS)
_TEXTS = _list(_TEXT)
_NOISES: Mapping[str, Check] = {"uniform": _range, "normal": _normal, "other": _TEXT}

_NETWORK = _table({"file": _NAME, "sha256": _SHA256, "largest_difference_to_torch": _number(0.0, 1.0)})

_TERM = _table(
    {
        "name": _TEXT,
        "function": _TEXT,
        "columns": _list(_COUNT, 2, 2),
        "unit": _TEXT,
        "scale": _scale,
        "noise": _maybe(_noise),
        "period_s": _POSITIVE,
    },
    optional=("noise", "period_s"),
)
_TERMS = _list(_TERM, 1)

_TASK: Mapping[str, Check] = {
    "observations": _table({"policy": _TERMS, "joint_mask": _TERMS, "fault_flag": _TERMS}),
    "joints": _list(
        _table(
            {
                "name": _NAME,
                "default_position_rad": _NUMBER,
                "kp_Nm_per_rad": _POSITIVE,
                "kd_Nms_per_rad": _GAIN,
                "effort_limit_Nm": _maybe(_POSITIVE),
                "velocity_limit_rad_per_s": _maybe(_POSITIVE),
                **dict.fromkeys(JOINT_LIMITS, _maybe(_NUMBER)),
            }
        ),
        1,
        MAX_JOINTS,
    ),
    "control": _table(
        {
            "physics_dt_s": _DT,
            "decimation": _number(1, 1000, whole=True),
            "policy_dt_s": _DT,
            "action_scale": _PER_JOINT,
            "action_offset_rad": _PER_JOINT,
            "target_rad": _TEXT,
            "torque_Nm": _TEXT,
            "action_clip": _maybe(_POSITIVE),
        }
    ),
    "feet": _list(_pattern),
    "start": _table(
        {
            "base_height_m": _NUMBER,
            "yaw_rad": _range,
            "base_velocity_m_rad_per_s": _list(_range, 6, 6),
            "joint_position_factor": _range,
            "soft_limit_factor": _number(0.0, 1.0, above=True),
            "friction": _range,
            "added_base_mass_kg": _range,
            "base_com_shift_m": _list(_range, 3, 3),
            "kp_factor": _range,
            "kd_factor": _range,
            "other_events": _TEXTS,
        }
    ),
    "fall": _table(
        {
            "contact_bodies": _list(_pattern),
            "contact_force_N": _GAIN,
            "contact_history_steps": _number(1, 1000, whole=True),
            "max_roll_rad": _maybe(_POSITIVE),
            "max_pitch_rad": _maybe(_POSITIVE),
            "min_height_m": _maybe(_NUMBER),
            "other_terminations": _TEXTS,
        }
    ),
}
"""What follows from a task's cfg alone."""

_FILE = _table(
    {
        "format": _COUNT,
        "checkpoint": _table({"file": _NAME, "sha256": _SHA256}),
        "trained": _table(
            {
                "robot": _NAME,
                "task": _TEXT,
                "stage": _number(1, 2, whole=True),
                "model": _TEXT,
                "joint_names": _list(_NAME, 1, MAX_JOINTS),
                "seed": _number(-(2**63), 2**63, whole=True),
                "iteration": _number(0, 2**53, whole=True),
                "umc_version": _TEXT,
                "agent": _TEXT,
                "experiment": _TEXT,
                "agent_overrides": _list(_text(r"(?s).{0,10000}")),
                "physics": _TEXT,
                "terrain": _TEXT,
                "env_overrides": _maybe(_list(_text(r"(?s).{0,10000}"))),
                "network_overrides": _list(_text(r"(?s).{0,10000}")),
            },
            optional=("network_overrides",),
        ),
        "inputs": _table(
            {"policy": _TEXT, "joint_mask": _TEXT, "fault_flag": _TEXT, MEMORY_INPUT: _TEXT}, optional=(MEMORY_INPUT,)
        ),
        "output": _TEXT,
        "normalizer": _maybe(_TEXT),
        **_TASK,
        "onnx": _NETWORK,
        "torchscript": _NETWORK,
        "detector": _NETWORK,
    },
    optional=("detector",),
)


def _validate_parts(content: Mapping[str, Any]) -> None:
    """Check what parts of a task have to agree on."""
    _validate_joints(content)
    _validate_observations(content["observations"], len(content["joints"]))


def _validate_joints(content: Mapping[str, Any]) -> None:
    """Check what joints and control have to agree on."""
    joints, control = content["joints"], content["control"]
    names = [joint["name"] for joint in joints]
    if len(set(names)) < len(names):
        raise _Invalid("joints names a joint twice")
    for number, joint in enumerate(joints):
        pose, lower, upper = (joint[key] for key in ("default_position_rad", *JOINT_LIMITS))
        if (lower is not None and pose < lower) or (upper is not None and pose > upper):
            raise _Invalid(f"joints.{number}.default_position_rad is outside the joint's limits")
    for key in ("action_scale", "action_offset_rad"):
        if len(control[key]) != len(names):
            raise _Invalid(f"control.{key} has to be a list of {len(names)} entries")
    if abs(control["physics_dt_s"] * control["decimation"] - control["policy_dt_s"]) > 1e-9:
        raise _Invalid("control.policy_dt_s is not physics_dt_s times decimation")


def _validate_observations(groups: Mapping[str, Sequence[Mapping[str, Any]]], num_joints: int) -> None:
    """Check that terms follow each other without gaps, that a robot measures them, and how wide they are."""
    _validate_terms("policy", groups["policy"], MEASURABLE, num_joints)
    for name, width in (("joint_mask", num_joints), ("fault_flag", 3)):
        if len(groups[name]) != 1:
            raise _Invalid(f"observations.{name} has to be a list of one term")
        _validate_terms(name, groups[name], {name: width}, num_joints)


def _validate_terms(
    group: str, terms: Sequence[Mapping[str, Any]], functions: Mapping[str, int | None], num_joints: int
) -> None:
    if unknown := [shown(term["function"]) for term in terms if term["function"] not in functions]:
        raise _Invalid(f"{group} reads {', '.join(unknown[:3])}, which no robot measures (train without)")
    end = 0
    for number, term in enumerate(terms):
        place, (first, stop) = f"observations.{group}.{number}", term["columns"]
        width = functions[term["function"]]
        width = num_joints if width is None else width
        if first != end or stop <= first or (width and stop - first != width):
            raise _Invalid(f"{place}.columns has to be [{end}, {end + width if width else 'more'}]")
        if isinstance(term["scale"], list) and len(term["scale"]) != stop - first:
            raise _Invalid(f"{place}.scale has to be a list of {stop - first} entries")
        if (term["function"] == "phase_clock") != ("period_s" in term):
            raise _Invalid(f"{place}.period_s is what phase_clock needs, and no other term")
        end = stop
