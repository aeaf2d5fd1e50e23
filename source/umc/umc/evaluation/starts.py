# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Seeds start and pushes of every robot of an evaluation, so that they do not depend on others of its batch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from isaaclab.envs import mdp as lab
from isaaclab.managers import EventTermCfg, ManagerTermBase
from torch.overrides import TorchFunctionMode

from umc.evaluation.pushes import pushes
from umc.mdp.add_faults import RESET_TERM
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedEnv, ManagerBasedRLEnv

STARTS_TERM = "seeded_starts"
"""Name of the event term that starts robots."""

PUSHES_TERM = "seeded_pushes"
"""Name of the event term that pushes robots."""

START = "start"
"""Mode of the terms that randomise a robot's physics and state; they run when an evaluation starts it."""

_MULTIPLIER = 0x9E3779B1
"""Knuth's multiplier, which spreads members over the seeds."""

BATCHED_TERMS = (
    lab.randomize_rigid_body_material,
    lab.randomize_rigid_body_mass,
    lab.randomize_rigid_body_com,
    lab.randomize_actuator_gains,
    lab.apply_external_force_torque,
    lab.reset_root_state_uniform,
    lab.reset_joints_by_scale,
)
"""Terms of UMC's and Isaac Lab's velocity tasks, which treat every env alike and draw one row of numbers for each, so
that one call starts all envs. If a task has another one, its terms run env by env (2 ms an env on a CPU)."""

DRAWS = (torch.rand, torch.randn, torch.randint)
"""Functions by which those terms draw."""


def seed_starts(events: Any) -> None:
    """Move all randomisation of an env cfg into the start of an evaluation.

    Isaac Lab draws physics and starts for all envs at once from one generator, so that a robot's friction depends on
    its neighbours. Here every env draws with the seed of its robot, as if it were alone.
    """
    for name, term in vars(events).items():
        if getattr(term, "mode", None) in ("startup", "reset") and name != RESET_TERM:
            term.mode = START
    func: Any = SeededStarts
    setattr(events, STARTS_TERM, EventTermCfg(func=func, mode="reset"))


class SeededStarts(ManagerTermBase):
    """Reset of all robots to seeded starts after :meth:`prepare`, and of those that fall later to the default state."""

    def __init__(self, cfg: EventTermCfg, env: ManagerBasedEnv) -> None:
        super().__init__(cfg, env)
        self._seeds: list[int] | None = None
        self.robots = torch.zeros(2, env.num_envs, dtype=torch.int64, device=env.device)
        """Seed of every env, and which robot of its seed it is. Shape is (2, num_envs)."""

    def prepare(self, seed: torch.Tensor, member: torch.Tensor) -> None:
        """Set the seeds, and which robot of its seed each env is, for the next reset of all; int64 of (num_envs,)."""
        self._seeds = ((seed * _MULTIPLIER + member) % 2**31).tolist()
        self.robots = torch.stack((seed, member))

    def __call__(self, env: ManagerBasedEnv, env_ids: torch.Tensor | slice) -> None:
        """Reset some envs."""
        lab.reset_scene_to_default(env, torch.arange(env.num_envs, device=env.device)[env_ids])
        if self._seeds is None:
            return
        seeds, self._seeds = self._seeds, None
        self.robots = self.robots.to(env.device)
        names = env.event_manager.active_terms[START]
        terms = [env.event_manager.get_term_cfg(name).func for name in names]
        # a class term is an instance of its class by now
        kinds = [term if inspect.isfunction(term) or inspect.isclass(term) else type(term) for term in terms]
        batched = all(kind in BATCHED_TERMS for kind in kinds)
        (start_batched if batched else start_one_by_one)(env, seeds)


def start_one_by_one(env: ManagerBasedEnv, seeds: Sequence[int]) -> None:
    """Run the terms of the start for one env after the other."""
    with torch.random.fork_rng():
        for number, seed in enumerate(seeds):
            torch.manual_seed(seed)
            env.event_manager.apply(mode=START, env_ids=torch.tensor([number], device=env.device))


def start_batched(env: ManagerBasedEnv, seeds: Sequence[int]) -> None:
    """Run the terms of the start once for all envs, which gives the bits of :func:`start_one_by_one`."""
    with PerEnvRandom(seeds):
        env.event_manager.apply(mode=START, env_ids=torch.arange(env.num_envs, device=env.device))


class PerEnvRandom(TorchFunctionMode):
    """Random numbers drawn row by row while it is active, each env's from a generator with its own seed."""

    def __init__(self, seeds: Sequence[int]) -> None:
        super().__init__()
        self._seeds = seeds
        self._generators: dict[torch.device, list[torch.Generator]] = {}

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Draw row by row; pass every other function on."""
        kwargs = dict(kwargs or {})
        if func not in DRAWS:
            return func(*args, **kwargs)
        bounds = args[:2] if func is torch.randint else ()
        size = kwargs.pop("size", None) or args[len(bounds) :]
        size = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
        rows, rest = divmod(size[0], len(self._seeds))
        if rest:
            raise UmcError(f"a start draws {size[0]} rows of numbers for {len(self._seeds)} envs; remove its term")
        generators = self._generators_on(torch.device(kwargs.get("device") or "cpu"))
        return torch.cat([func(*bounds, (rows, *size[1:]), generator=own, **kwargs) for own in generators])

    def _generators_on(self, device: torch.device) -> list[torch.Generator]:
        if device not in self._generators:
            self._generators[device] = [torch.Generator(device).manual_seed(seed) for seed in self._seeds]
        return self._generators[device]


def seed_pushes(env_cfg: Any, speed: float) -> None:
    """Let an evaluation push its robots, by changes of the trunk's velocity of up to ``speed`` along x and y [m/s]."""
    step = env_cfg.sim.dt * env_cfg.decimation
    term = EventTermCfg(
        func=push_seeded, mode="interval", interval_range_s=(step, step), is_global_time=True, params={"speed": speed}
    )
    setattr(env_cfg.events, PUSHES_TERM, term)


def push_seeded(env: ManagerBasedRLEnv, env_ids: None, speed: float) -> None:
    """Push the robots whose turn it is, after an env step."""
    asset: Articulation = env.scene["robot"]
    seed, member = starts_of(env).robots
    pushed, change = pushes(seed, member, env.episode_length_buf, speed)
    if len(rows := pushed.nonzero().flatten()):
        velocity = asset.data.root_vel_w.torch[rows]
        velocity[:, :2] += change[rows]
        asset.write_root_velocity_to_sim_index(root_velocity=velocity, env_ids=rows)


def starts_of(env: ManagerBasedEnv) -> SeededStarts:
    """Return the term that starts the robots of an evaluation."""
    term = env.event_manager.get_term_cfg(STARTS_TERM).func
    assert isinstance(term, SeededStarts)
    return term
