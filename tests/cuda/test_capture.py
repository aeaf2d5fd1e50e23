# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""On a GPU Isaac Lab records Newton's step as a CUDA graph: what faults do inside it is the same in every step.

A recorder around Warp's launches sees on a CPU what a graph would hold.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.engine

ENVS, EPISODE, STEPS = 4, 6, 14
"""Envs, env steps of an episode, and of the run: faults set in and end, and all envs are reset twice."""


class Recorder:
    """What a step of Newton launches, and what the callback of the limits calls beside launches."""

    def __init__(self):
        self.pointers: set[int] = set()
        """Arrays that kernels of the step take."""
        self.ours: list[tuple[str, list[bytes]]] = []
        """Kernels of ours in the step, and their packed arguments: sizes, and shapes and addresses of arrays."""
        self.others: list[str] = []
        """What the callback calls beside them: copies, allocations, reads by the host, operators of torch."""
        self.is_inside = False

    def install(self):
        import warp as wp
        from torch.utils._python_dispatch import TorchDispatchMode
        from warp._src import context

        recorder, launch, launch_again = self, context.launch, wp.Launch.launch

        def recorded(kernel, dim, inputs=(), outputs=(), **options):
            recorder.pointers |= {value.ptr for value in (*inputs, *outputs) if isinstance(value, wp.array)}
            if recorder.is_inside:
                recorder.others.append(f"launch of {kernel.key}")
            return launch(kernel, dim, inputs=inputs, outputs=outputs, **options)

        def recorded_again(command, stream=None):
            if recorder.is_inside:
                recorder.ours.append((command.kernel.key, [bytes(value) for value in command.params]))
            return launch_again(command, stream)

        def noted(owner, name):
            call = getattr(owner, name)

            def note(*args, **kwargs):
                if recorder.is_inside:
                    recorder.others.append(name)
                return call(*args, **kwargs)

            setattr(owner, name, note)

        class Torch(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                if recorder.is_inside:
                    recorder.others.append(str(func))
                return func(*args, **(kwargs or {}))

        wp.launch = context.launch = recorded
        wp.Launch.launch = recorded_again
        for owner, name in ((wp, "copy"), (wp.array, "__init__"), (wp.array, "numpy")):
            noted(owner, name)
        Torch().__enter__()

    def watch(self, callback):
        """Return the callback with a mark at its start and its end."""

        def watched(model, data):
            self.is_inside = True
            callback(model, data)
            self.is_inside = False

        return watched

    def take(self):
        """Return what was recorded, and begin anew."""
        taken = self.ours, self.others, self.pointers
        self.ours, self.others, self.pointers = [], [], set()
        return taken


def recorded_steps(physics: str) -> dict:
    """A1s whose faults come and go."""
    import hashlib

    import fault_env
    import torch
    from isaaclab.actuators.newton.adapter import resolve_actuator_component
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab.envs import mdp as lab
    from isaaclab.managers import EventTermCfg
    from isaaclab_newton.physics import NewtonManager
    from umc.mdp.fault_terms import fault_term

    recorder = Recorder()
    recorder.install()
    faults = {
        "ratios": {"rom+effort+velocity": 3.0, "locked+power_loss": 1.0},
        "severity": {"rom": 0.3, "effort": 5.0, "velocity": 3.0},
        "num_joints": (2, 6),
        "onset": None,
        "onset_range": (1, 4),
        "duration": (1, 3),
        "seed": 1,
    }
    cfg = fault_env.a1_cfg(physics, ENVS, EPISODE, faults)
    cfg.events = {
        "reset_faults": cfg.events.reset_faults,
        "default": EventTermCfg(func=lab.reset_scene_to_default, mode="reset"),
        "faults": cfg.events.faults,
    }
    env = ManagerBasedRLEnv(cfg)
    env.reset()
    actions = torch.zeros(ENVS, 12)
    env.step(actions)  # Isaac Lab takes one step before it records
    term, solver = fault_term(env), NewtonManager._solver
    joints = term.writer._position.engine
    control = solver.mjw_model.callback
    control.control = recorder.watch(control.control)
    recorder.take()
    kernels, arguments, others, missing, limits = [], [], [], [], []
    ((_, parameter, _),) = term.writer._effort._clamps
    motors = env.scene["robot"].actuators["legs"]
    clamp = resolve_actuator_component(motors, "clamping", parameter)
    for _ in range(STEPS):
        limits.append([float(value.sum()) for value in vars(term.state.limits(term.writer.healthy)).values()])
        env.step(actions)
        ours, other, pointers = recorder.take()
        kernels.append([name for name, _ in ours])
        arguments.append(sorted({hashlib.sha256(b"".join(packed)).hexdigest() for _, packed in ours}))
        others += other
        written = {
            "window in the solver": solver.mjw_model.jnt_range.ptr,
            "torque": getattr(clamp, parameter).ptr,
        }
        missing += [name for name, pointer in written.items() if pointer not in pointers]
        packed = b"".join(ours[0][1])
        bounds = {"speed": joints._speed, "lower": joints._lower, "upper": joints._upper}
        missing += [name for name, array in bounds.items() if array.ptr.to_bytes(8, "little") not in packed]
    steps = cfg.decimation * cfg.sim.physics.num_substeps
    return {
        "kernels": kernels,
        "arguments": arguments,
        "others": others,
        "missing": missing,
        "limits": limits,
        "substeps": steps,
    }


@pytest.fixture(scope="module")
def steps(run_engine):
    return SimpleNamespace(**run_engine(recorded_steps))


def test_every_step_launches_the_same_kernels_on_the_same_arrays_while_faults_change(steps):
    assert len({tuple(values) for values in steps.limits}) > STEPS // 2
    assert steps.kernels == [["bound_speeds"] * steps.substeps] * STEPS
    assert len(steps.arguments[0]) == 1
    assert steps.arguments == [steps.arguments[0]] * STEPS


def test_the_step_allocates_copies_and_reads_nothing_for_faults(steps):
    assert steps.others == []


def test_faults_are_written_into_the_arrays_that_the_step_reads(steps):
    assert steps.missing == []
