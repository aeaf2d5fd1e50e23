# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What the fault layer costs per env step, as a Markdown table.

One environment per engine runs short blocks with and without faults in turns, each pair from the same start with the
same actions; in blocks without, the fault terms are out of the way and sensors are read as Isaac Lab would. On a CPU
all threads are timed by their processor time, so that the ratios mean something on a busy machine; on CUDA by the wall.
Usage:

    ./isaaclab.sh -p benchmarks/faults.py [--num_envs 1024] [--engines newton_mjwarp ovphysx] [--rounds 5] [--steps 6]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from common import ENGINES, Timers, clock_name, clock_of, positive, run_apart, stage2_cfg
from ratios import add_json_flag, save, spread

if TYPE_CHECKING:
    import torch
    from isaaclab.envs import ManagerBasedRLEnv

KINDS = (
    *("rom", "effort", "velocity", "locked", "power_loss", "braking", "derating", "friction"),
    *("dead", "frozen", "bias", "drift", "noise"),
    *("dropped", "delayed", "burst_loss", "growing_delay", "backlash"),
    *("imu_dead", "imu_frozen", "imu_bias", "imu_drift"),
)
SCENARIOS = (*KINDS, "dead+rom+effort+velocity", "noise+drift+delayed", "frozen+locked+dropped")
"""Assigned to the envs in turn: every kind alone, and some together."""

SEVERITY = {
    "rom": 0.3,
    "effort": 8.0,
    "velocity": 5.0,
    "braking": 3.0,
    "derating": 3.0,
    "friction": 3.0,
    "bias": 0.1,
    "drift": 0.1,
    "noise": {"log_uniform": [0.01, 0.1]},
    "dropped": 0.5,
    "delayed": {"choice": [1, 2, 5]},
    "burst_loss": 5,
    "growing_delay": 0.1,
    "backlash": 0.3,
    "imu_bias": 0.5,
    "imu_drift": 0.2,
}

ONSET = 3
"""Onset in steady blocks [env steps]; the steps before let physics forget the last block."""

WARM_UP = 2
"""Further steps of a block that are not timed."""

CHURN_EPISODE, CHURN_ONSETS, CHURN_DURATION = 40, (1, 25), (2, 10)
"""Episode, first and last onset and length of a fault where onsets and resets come every step [env steps]."""

STEADY, CHURN = f"{len(KINDS)} kinds active", "onsets and resets every step"
TARGETS = {STEADY: 1.05, CHURN: 1.15}
"""Highest ratio that UMC allows itself, at 1,024 envs on a CPU."""

Call = Callable[..., Any]


def without_waiting(func: Call) -> Call:
    """Return a function that raises an error if it makes the host wait for the GPU."""

    def watched(*args: Any, **kwargs: Any) -> Any:
        import torch

        torch.cuda.set_sync_debug_mode("error")
        try:
            return func(*args, **kwargs)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    return watched


class Switch:
    """Removes and restores the fault terms of an environment, and times them."""

    def __init__(self, env: ManagerBasedRLEnv, is_watched: bool) -> None:
        from umc import mdp
        from umc.mdp.observations import group_terms

        self.env = env
        self.timers, self._is_watched = Timers(env.device), is_watched
        self._pairs: list[tuple[Any, Call, Call]] = []

        def plain_sensor(env: Any, func: Call, noise: Any = None, **kwargs: Any) -> torch.Tensor:
            signal = func(env)
            return signal if noise is None else noise.func(signal, noise)

        def constant(value: torch.Tensor | None) -> Call:
            return lambda *args, **kwargs: value

        for cfg in (env.event_manager.get_term_cfg(name) for name in ("reset_faults", "faults")):
            self._replace(cfg, "events", constant(None))
        for group in env.observation_manager.active_terms:
            for cfg in group_terms(env, group).values():
                if isinstance(cfg.func, mdp.joint_sensor | mdp.imu_sensor):
                    self._replace(cfg, "sensors", plain_sensor)
                elif cfg.func in (mdp.joint_mask, mdp.fault_flag):
                    self._replace(cfg, "mask and flag", constant(cfg.func(env, **cfg.params)))
        self._action = env.action_manager.get_term("command_faults")
        for name in ("process_actions", "apply_actions"):
            setattr(self._action, name, self._timed("commands", getattr(self._action, name)))
        self._newton: Any = None
        if env.sim.physics_manager.__name__.startswith("Newton"):
            from isaaclab_newton.physics import NewtonManager

            self._newton, self._graph = cast(Any, NewtonManager), None  # no public way to solver and graph
            # UMC's part of Newton's step; a captured graph runs no Python, so that nothing is timed there
            callback = self._newton._solver.mjw_model.callback
            callback.control = self._control = self.timers.timed("speed rows", callback.control)

    def _replace(self, cfg: Any, part: str, plain: Call) -> None:
        """Replace a term of a manager's cfg in blocks without faults."""
        self._pairs.append((cfg, self._timed(part, cfg.func), self.timers.timed(part, plain, cfg.func)))

    def _timed(self, part: str, func: Call) -> Any:
        return self.timers.timed(part, without_waiting(func) if self._is_watched else func, func)

    def turn(self, on: bool) -> None:
        """Restore the fault terms or remove them."""
        for cfg, real, plain in self._pairs:
            cfg.func = real if on else plain
        terms = self.env.action_manager._terms
        if on:
            terms["command_faults"] = self._action
        else:
            terms.pop("command_faults", None)
        callback = self._newton and self._newton._solver.mjw_model.callback
        if callback and on != (callback.control is not None):
            callback.control = self._control if on else None
            if "cuda" in self.env.device:
                # with and without have a CUDA graph each
                self._graph, self._newton._graph = self._newton._graph, self._graph
                self._newton._graph_capture_pending = self._newton._graph is None


def make_env(physics: str, num_envs: int, device: str) -> ManagerBasedRLEnv:
    """Make A1's Stage 2 with every kind of fault."""
    from isaaclab.envs import ManagerBasedRLEnv
    from umc import mdp

    cfg = stage2_cfg("A1", physics, num_envs, device)
    cfg.actions.command_faults = mdp.CommandFaultsCfg()
    mdp.add_imu_sensors(cfg)
    cfg.events.faults.params = {"scenario": SCENARIOS, "severity": SEVERITY, "onset": ONSET}
    for name in ("trunk_contact", "orientation", "height"):  # a fallen robot stays in its block
        setattr(cfg.terminations, name, None)
    return ManagerBasedRLEnv(cfg)


def schedule_of(env: ManagerBasedRLEnv, case: str) -> Any:
    """Return the schedule of a case, :data:`STEADY` or :data:`CHURN`."""
    from umc.faults import FaultSchedule
    from umc.mdp.fault_terms import fault_term

    joint_names = fault_term(env).state.joint_names
    params: dict[str, Any] = {"scenario": SCENARIOS, "severity": SEVERITY, "device": env.device}
    if case == STEADY:
        return FaultSchedule(joint_names, onset=ONSET, **params)
    return FaultSchedule(joint_names, onset_range=CHURN_ONSETS, duration=CHURN_DURATION, **params)


def run_block(env: ManagerBasedRLEnv, switch: Switch, case: str, on: bool, seed: int, steps: int) -> list[float]:
    """Return the time of each of some steps [s]; seed of start, noise and actions."""
    import torch

    clock = clock_of(env.device)
    torch.manual_seed(seed)
    switch.turn(on=True)
    env.reset()
    env.step(torch.zeros(env.num_envs, 12, device=env.device))  # no fault is on yet
    switch.turn(on)
    if case == CHURN:
        env.episode_length_buf[:] = torch.arange(env.num_envs, device=env.device) % CHURN_EPISODE
    generator = torch.Generator().manual_seed(seed)
    taken = []
    for number in range(ONSET + WARM_UP + steps):
        if number == ONSET + WARM_UP:
            switch.timers.seconds.clear()
        action = 0.3 * torch.randn(env.num_envs, 12, generator=generator).to(env.device)
        start = clock()
        env.step(action)
        taken.append(clock() - start)
    return taken[-steps:]


def measure(physics: str, num_envs: int, device: str, rounds: int, steps: int) -> dict[str, dict[str, Any]]:
    """Measure one engine: by case ratios, median times of a step [s], and what each part of the faults adds [s]."""
    import torch
    from umc.mdp.fault_terms import fault_term

    torch.set_num_threads(1)
    env = make_env(physics, num_envs, device)
    env.reset()
    env.step(torch.zeros(num_envs, 12, device=env.device))  # terms and engine hook up before they are replaced
    switch = Switch(env, is_watched="cuda" in env.device and physics == "newton_mjwarp")
    state, steady_length = fault_term(env).state, env.cfg.episode_length_s
    measured = {}
    for case in (STEADY, CHURN):
        state.source = schedule_of(env, case)
        env.cfg.episode_length_s = steady_length if case == STEADY else CHURN_EPISODE * env.step_dt
        medians: dict[bool, list[float]] = {False: [], True: []}
        parts: dict[str, float] = defaultdict(float)
        for number in range(rounds + 1):
            for on in (False, True) if number % 2 else (True, False):
                taken = run_block(env, switch, case, on, seed=number, steps=steps)
                if number > 0:
                    medians[on].append(statistics.median(taken))
                    for part, seconds in switch.timers.seconds.items():
                        parts[part] += (seconds if on else -seconds) / rounds / steps
        measured[case] = {
            "ratios": [on / off for off, on in zip(medians[False], medians[True], strict=True)],
            "without": statistics.median(medians[False]),
            "with": statistics.median(medians[True]),
            "parts": parts,
        }
    return measured


def measure_apart(physics: str, args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Run :func:`measure` of one engine in a process of its own."""
    numbers = [f"--{name}={getattr(args, name)}" for name in ("num_envs", "device", "rounds", "steps")]
    return json.loads(run_apart(physics, __file__, [f"--child={physics}", *numbers]))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num_envs", type=positive, default=1024, help="envs")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES, help="physics engines")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--rounds", type=positive, default=5, help="pairs of blocks that count")
    parser.add_argument("--steps", type=positive, default=6, help="timed steps of a block")
    parser.add_argument("--child", choices=ENGINES, help=argparse.SUPPRESS)
    add_json_flag(parser)
    args = parser.parse_args()
    if args.child:
        measured = measure(args.child, args.num_envs, args.device, args.rounds, args.steps)
        print("\n" + json.dumps(measured), flush=True)
        os._exit(0)  # the teardown of an engine may hang
    blocks = f"{args.rounds} pairs of blocks of {args.steps} steps"
    print(f"{args.num_envs} A1, {args.device}, {clock_name(args.device)}, {blocks}\n")
    print("| engine | case | without [ms] | with [ms] | ratio: median (min to max) | target | UMC's own code [ms] |")
    print("|---|---|---:|---:|---|---:|---|")
    saved = {}
    for physics in args.engines:
        for case, measured in measure_apart(physics, args).items():
            saved[f"A1, {physics}, {args.num_envs:,} envs, {case}"] = measured["ratios"]
            own = sum(measured["parts"].values())
            parts = ", ".join(f"{name} {1e3 * seconds:.1f}" for name, seconds in sorted(measured["parts"].items()))
            parts = f"{1e3 * own:.1f} ({own / measured['without']:.1%}): {parts}"
            times = f"{1e3 * measured['without']:.1f} | {1e3 * measured['with']:.1f}"
            ratio = spread(measured["ratios"], 3)
            print(f"| {physics} | {case} | {times} | {ratio} | {TARGETS[case]:.2f} | {parts} |", flush=True)
    save(args.json, saved)


if __name__ == "__main__":
    main()
