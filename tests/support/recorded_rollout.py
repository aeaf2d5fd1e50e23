# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A rollout, and what a robot's own sensors would have said; a file of its own: an engine's process imports it."""

STEPS, ONSET = 30, 8
"""Length of the rollout and the step at which sensors die [env steps]."""

SCENARIOS = (1, 2, 8)
"""Of the three envs: dead sensors, dead sensors and less range of motion, healthy."""


def what_a_robot_feels_and_does(physics: str, checkpoint: str) -> dict:
    """Rolls a G1 policy out and writes raw sensor values, actions and joint targets down."""
    import torch
    import umc.tasks  # noqa: F401 - registers the ids
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab_tasks.utils import load_cfg_from_registry, resolve_presets
    from tensordict import TensorDict
    from umc.mdp import fault_state
    from umc.rl.policy import load_policy

    torch.set_num_threads(1)
    cfg = resolve_presets(load_cfg_from_registry("UMC-G1-Stage2", "env_cfg_entry_point"), [physics])
    cfg.sim.device = "cpu"
    cfg.scene.num_envs, cfg.seed, cfg.events.push = len(SCENARIOS), 5, None
    cfg.observations.policy.enable_corruption = False
    cfg.events.faults.params.update(scenario=SCENARIOS, onset=ONSET)
    env = ManagerBasedRLEnv(cfg)
    robot, obs = env.scene["robot"], env.reset()[0]
    policy = load_policy(checkpoint, {name: value.shape[1] for name, value in obs.items()})
    state, steps = fault_state(env), []
    for _ in range(STEPS):
        raw = {
            "joint_position": robot.data.joint_pos.torch,
            "joint_velocity": robot.data.joint_vel.torch,
            "angular_velocity": robot.data.root_ang_vel_b.torch,
            "gravity": robot.data.projected_gravity_b.torch,
            "command": env.command_manager.get_command("base_velocity"),
            "dead": state.live_fault("dead").on,
            "detected": state.fault_flag[:, 0] > 0,
        }
        step = {name: value.tolist() for name, value in raw.items()}
        obs, _, terminated, truncated, _ = env.step(policy(TensorDict(obs, batch_size=[env.num_envs])))
        step["target"] = env.action_manager.get_term("joint_pos").processed_actions.tolist()
        step["ended"] = (terminated | truncated).tolist()
        steps.append(step)
    return {"joints": list(robot.joint_names), "steps": steps}
