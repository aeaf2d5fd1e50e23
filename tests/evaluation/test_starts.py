# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Starts depend on the seed of a robot alone, and one call for all envs gives the bits of one call for each."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from isaaclab.envs import mdp as lab
from umc.evaluation.starts import PerEnvRandom, SeededStarts
from umc.utils.errors import UmcError

SEEDS = [3, 1, 4, 1, 5, 9, 2, 6]


@pytest.mark.parametrize(
    "draws",
    [
        lambda envs: [torch.rand(envs, 4), torch.rand((envs, 2, 3), device="cpu"), torch.rand(envs)],
        lambda envs: [torch.randint(0, 64, (envs, 17), device="cpu"), torch.randint(2, 9, size=(envs,))],
        lambda envs: [torch.randn(torch.Size((envs, 30))), torch.rand(3 * envs, 2).reshape(envs, 3, 2)],
    ],
)
def test_every_env_draws_with_its_own_seed(draws):
    alone = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        alone.append(draws(1))
    torch.manual_seed(7)
    state = torch.get_rng_state()
    with PerEnvRandom(SEEDS):
        together = draws(len(SEEDS))
    for number, numbers in enumerate(together):
        assert torch.equal(numbers, torch.cat([one[number] for one in alone]))
    assert torch.equal(torch.get_rng_state(), state)  # the global generator is untouched


def test_a_draw_whose_rows_are_not_the_envs_is_refused():
    with PerEnvRandom(SEEDS), pytest.raises(UmcError, match="draws 9 rows of numbers for 8 envs"):
        torch.rand(9, 2)


@pytest.mark.parametrize("foreign", [False, True])
def test_an_unknown_term_runs_env_by_env(monkeypatch, foreign):
    applied = []
    terms = {"joints": lab.reset_joints_by_scale, **({"own": lambda env, env_ids: None} if foreign else {})}
    manager = SimpleNamespace(
        active_terms={"start": list(terms)},
        get_term_cfg=lambda name: SimpleNamespace(func=terms[name]),
        apply=lambda mode, env_ids: applied.append(env_ids.tolist()),
    )
    monkeypatch.setattr(lab, "reset_scene_to_default", lambda env, env_ids: None)
    env = cast(Any, SimpleNamespace(event_manager=manager, num_envs=3, device="cpu"))
    starts = object.__new__(SeededStarts)
    starts.prepare(torch.tensor([1, 1, 2]), torch.tensor([0, 1, 0]))
    starts(env, slice(None))
    assert applied == ([[0], [1], [2]] if foreign else [[0, 1, 2]])
    starts(env, slice(None))  # a robot that falls does not start again
    assert len(applied) == (3 if foreign else 1)


def start_both_ways(physics: str, num_envs: int) -> dict:
    """Return which quantities differ between robots started one by one and at once, and which do not with the seed."""
    import umc.tasks  # noqa: F401
    import warp as wp
    from isaaclab.actuators.newton import read_group_parameter
    from isaaclab.envs import ManagerBasedEnv, ManagerBasedRLEnv
    from isaaclab_ov import tensor_types
    from isaaclab_tasks.utils import load_cfg_from_registry, resolve_presets
    from umc.evaluation.starts import seed_starts, start_batched, start_one_by_one
    from umc.terrains import FLAT_GROUND_CFG

    torch.set_num_threads(1)
    task = load_cfg_from_registry("UMC-A1-Stage2", "env_cfg_entry_point")
    cfg: Any = resolve_presets(task, [physics, "flat"])
    cfg.scene.terrain, cfg.scene.num_envs, cfg.sim.device, cfg.seed = FLAT_GROUND_CFG, num_envs, "cpu", 0
    seed_starts(cfg.events)
    env: ManagerBasedEnv = ManagerBasedRLEnv(cfg)
    env.reset()
    asset = env.scene["robot"]

    def state() -> dict[str, torch.Tensor]:
        data = asset.data
        names = ("joint_pos", "joint_vel", "root_link_pose_w", "root_com_vel_w", "body_mass", "body_com_pos_b")
        found = {name: getattr(data, name).torch.clone() for name in names}
        # of the trunk, which is body 0: ovphysx turns the axes of the other links' inertias with every start (up to
        # 3.4e-4 kg*m^2), however they are started
        found["trunk_inertia"] = data.body_inertia.torch[:, 0].clone()
        for gain in ("kp", "kd"):
            found[gain] = read_group_parameter(asset.actuators, "legs", "controller", gain).clone()
        friction = asset.root_view.get_attribute(tensor_types.SHAPE_FRICTION_AND_RESTITUTION)
        return {**found, "friction": wp.to_torch(friction).clone()}

    def run(start: Any, seeds: list[int]) -> dict[str, torch.Tensor]:
        lab.reset_scene_to_default(env, torch.arange(num_envs))
        start(env, seeds)
        return state()

    seeds = [1000 + 7 * number for number in range(num_envs)]
    alone = run(start_one_by_one, seeds)
    other = run(start_batched, [5 * seed for seed in seeds])
    together = run(start_batched, seeds)
    return {
        "differ": [name for name, value in alone.items() if not torch.equal(value, together[name])],
        "kept": [name for name, value in other.items() if torch.equal(value, together[name])],
    }


@pytest.mark.engine
def test_one_call_for_all_envs_gives_the_bits_of_one_for_each(run_engine):
    result = run_engine(start_both_ways, physics="ovphysx", num_envs=33)
    assert result["differ"] == []
    assert result["kept"] == ["joint_vel"]  # 0 for every robot


def test_robots_of_the_papers_seeds_all_start_differently():
    starts = object.__new__(SeededStarts)
    seeds = (1, 50, 75, 800)
    starts.prepare(torch.tensor(seeds).repeat_interleave(4000), torch.arange(4000).repeat(len(seeds)))
    assert starts._seeds is not None
    assert len(set(starts._seeds)) == 4000 * len(seeds)
