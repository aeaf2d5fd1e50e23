# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Inject and clear faults of single joints in a running episode, by changing its plan.

The changed plan is in effect until the episode ends. The next one is drawn as if nothing had been changed, since plans
depend on (seed, env, episode) and nothing else.
"""

from __future__ import annotations

from umc.faults.kinds import FaultKind, is_detected
from umc.faults.ledger_lines import MOST_FAULTS
from umc.faults.plan import NEVER, NO_SCENARIO
from umc.faults.state import FaultState
from umc.utils.errors import UmcError

PLACEMENT = 0.5
"""Where a manual range-of-motion window lies between its two extreme positions [-]: in the middle."""


def inject_fault(
    state: FaultState, env: int, joint: int, kind: FaultKind, severity: float, detected: bool | None = None
) -> list[int]:
    """Let a joint fail from the next env step on; a second fault of one kind replaces the first.

    ``severity`` is in the kind's unit; ``detected`` by default follows :func:`umc.faults.kinds.is_detected`. Returns
    the numbers of the faults of the env's plan that have changed; raises UmcError if the severity is out of range,
    there is no such env or joint, or the env has not been reset yet.
    """
    check_env(state, env)
    _check(state, env, joint)
    kind.check(severity)
    state.make_room(0, [kind])
    (new,) = _new(state, env)
    now = int(state.step[env])
    column = [one.name for one in state.kinds].index(kind.name)
    changed, present = [], {column}
    for number in _open(state, env, joint):
        kinds = state.plan.kinds[env, number].nonzero().flatten().tolist()
        if number >= state.source.num_faults and kinds == [column]:  # replaced by the new one
            _end(state, env, number, now)
            changed.append(number)
        else:
            present.update(kinds)
    if detected is None:
        detected = is_detected(state.kinds[index] for index in present)
    plan = state.plan
    plan.joints[env, new, joint] = True
    plan.kinds[env, new, column] = True
    plan.severity[env, new, column, joint] = severity
    plan.placement[env, new, joint] = PLACEMENT
    plan.detected[env, new] = detected
    plan.onset[env, new] = now + 1
    return [*changed, new]


def clear_faults(state: FaultState, env: int, joint: int | None = None) -> list[int]:
    """End a joint's faults, drawn or manual, from the next env step on; all joints' if none is given.

    Those that have yet to set in stay planned. Returns the numbers of the plan's faults that have changed; raises
    UmcError if the env has not been reset yet, or has no number left for a fault that other joints keep.
    """
    check_env(state, env)
    _check(state, env, joint)
    now = int(state.step[env])
    ending, moving = [], []
    for number in _open(state, env, joint, over=True):
        plan = state.plan
        if int(plan.end[env, number]) <= now + 1 and not moving:
            continue  # over: it moves only to stay behind a fault that was split
        made_now = int(plan.onset[env, number]) > now
        whole = joint is None or made_now or (not moving and int(plan.joints[env, number].sum()) == 1)
        (ending if whole else moving).append(number)
    parts = _split(state, env, joint, moving) if joint is not None and moving else []
    for number in ending:
        _end(state, env, number, now)
    return sorted({*ending, *moving, *parts})


def _split(state: FaultState, env: int, joint: int, faults: list[int]) -> list[int]:
    """Make a joint's part of some faults separate faults, which end with the next step; return their numbers.

    The other joints keep the first fault. All later ones of the joint have to be among ``faults``: their parts are
    moved behind the first one's, since the last fault of a kind is the one that counts. Manual faults hand their
    numbers on, so that only faults of several joints need a new one.
    """
    alone = state.plan.joints[env].sum(dim=1) == 1
    own = [number for number in faults if number >= state.source.num_faults and alone[number]]
    parts = [*own, *_new(state, env, len(faults) - len(own))]  # in order, as new numbers are the highest
    plan = state.plan  # which may have grown
    for name in ("scenario", "kinds", "detected", "onset", "period", "on", "severity", "placement", "end"):
        column = getattr(plan, name)[env]
        column[parts] = column[faults]
    state.faults_on[env, parts] = state.faults_on[env, faults]
    plan.end[env, parts] = plan.end[env, parts].clamp(max=int(state.step[env]) + 1)
    plan.joints[env, faults, joint] = False
    plan.joints[env, parts, joint] = True
    for number in faults:
        if not plan.joints[env, number].any():  # a second fault of the joint that was split before
            plan.onset[env, number] = NEVER
    return parts


def check_env(state: FaultState, env: int) -> None:
    """Raise UmcError if there is no such env."""
    if not 0 <= env < state.num_envs:
        raise UmcError(f"there is no env {env}; choose 0 to {state.num_envs - 1}")


def _check(state: FaultState, env: int, joint: int | None) -> None:
    if int(state.episode[env]) < 0:
        raise UmcError(f"env {env} has not started an episode; reset the environment first")
    if joint is not None and not 0 <= joint < len(state.joint_names):
        raise UmcError(f"there is no joint {joint}; choose 0 to {len(state.joint_names) - 1}")


def _open(state: FaultState, env: int, joint: int | None, over: bool = False) -> list[int]:
    """Faults of a joint that have set in or are manual, and are not over in the next step unless ``over``."""
    plan, now = state.plan, int(state.step[env])
    affects = plan.joints[env].any(dim=1) if joint is None else plan.joints[env, :, joint]
    started = plan.onset[env] <= now
    started[state.source.num_faults :] = plan.onset[env, state.source.num_faults :] <= now + 1
    return (affects & started & (over | (plan.end[env] > now + 1))).nonzero().flatten().tolist()


def _end(state: FaultState, env: int, number: int, now: int) -> None:
    """End a fault with the next step, or take it back if it was made in this one."""
    plan = state.plan
    if int(plan.onset[env, number]) > now:
        plan.joints[env, number] = False
        plan.onset[env, number] = NEVER
    else:
        plan.end[env, number] = now + 1


def _new(state: FaultState, env: int, count: int = 1) -> list[int]:
    """Return the numbers of faults that have not been used in this episode."""
    first = state.source.num_faults + state.num_manual[env]
    if first + count > MOST_FAULTS:
        raise UmcError(f"env {env} would have {first + count} faults in this episode, {MOST_FAULTS} at most; reset it")
    state.make_room(first + count)
    state.num_manual[env] += count
    state.plan.scenario[env, first : first + count] = NO_SCENARIO
    return list(range(first, first + count))
