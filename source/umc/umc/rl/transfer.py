# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A UMC policy of Stage 1 as the baseline's: ``python -m umc.rl.transfer CHECKPOINT``.

In Stage 1 no joint is masked and the fault flag is always -1, so the flag's weights are a constant. Folded into the
bias they leave the network of normal training, with the same outputs: UMC and its baseline can share a Stage 1, and the
baseline goes on with ``train.py --agent nm_<network> --checkpoint <file>`` for as many iterations as UMC's Stage 2.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Any

from umc.models.layout import FAULT_FLAG_WIDTH
from umc.rl.agents import AGENTS
from umc.rl.checkpoint import checkpoint_info, read_checkpoint, write_checkpoint
from umc.rl.stages import FLAG_READERS, HEALTHY_FLAG
from umc.utils.errors import UmcError
from umc.utils.naming import entry_point, experiment_name

BASELINE_PREFIX = "nm_"
"""What the name of a network has before it where mask and flag are left out."""


def fold_flag(data: dict[str, Any], path: Path | str) -> dict[str, Any]:
    """Leave mask and flag out of a Stage 1 checkpoint.

    Args:
        data: What :func:`umc.rl.checkpoint.read_checkpoint` returned.
        path: Where it came from, for the error.

    Returns:
        Checkpoint of the baseline with the same outputs on healthy robots; the optimizer's state is left out.

    Raises:
        UmcError: If it is not of Stage 1, or its network has no baseline.
    """
    info = checkpoint_info(data, path)
    name = BASELINE_PREFIX + info.model
    if info.stage != 1:
        raise UmcError(f"{path} has seen faults (Stage {info.stage}): give a checkpoint of Stage 1")
    if name not in AGENTS:
        raise UmcError(f"{path} holds the {info.model} model, which has no baseline {name}; give one of UMC's Stage 1")
    actor = dict(data["actor_state_dict"])
    layer = next((layer for layer in FLAG_READERS if f"{layer}.weight" in actor), None)
    if layer is None:
        raise UmcError(f"{path} has none of the layers {', '.join(FLAG_READERS)}: train it again with this version")
    weight, bias = actor[f"{layer}.weight"].double(), actor[f"{layer}.bias"].double()
    sensors, flag = weight[:, :-FAULT_FLAG_WIDTH], weight[:, -FAULT_FLAG_WIDTH:]
    actor[f"{layer}.weight"] = sensors.float()
    actor[f"{layer}.bias"] = (bias + HEALTHY_FLAG * flag.sum(1)).float()
    folded = dataclasses.replace(
        info, model=name, agent=entry_point(name), experiment=experiment_name(info.robot, name, 1)
    )
    return {
        "actor_state_dict": actor,
        "critic_state_dict": data["critic_state_dict"],
        "iter": data["iter"],
        "infos": {**data["infos"], "umc": dataclasses.asdict(folded)},
    }


def main(argv: list[str]) -> int:
    """Run ``python -m umc.rl.transfer``.

    Args:
        argv: Arguments without the module's name.

    Returns:
        Exit status: 0 done, 2 wrong use.
    """
    parser = argparse.ArgumentParser(prog="python -m umc.rl.transfer", description=__doc__)
    parser.add_argument("checkpoint", type=Path, help="model_*.pt of a UMC agent's Stage 1")
    parser.add_argument("--out", type=Path, help="file to write; beside the checkpoint, in a folder of its own")
    options = parser.parse_args(argv)
    # in the run's own folder it would be taken for a policy of that run, whose sizes are written down there
    out = options.out or options.checkpoint.parent / "folded" / (BASELINE_PREFIX + options.checkpoint.name)
    try:
        folded = fold_flag(read_checkpoint(options.checkpoint), options.checkpoint)
        out.parent.mkdir(parents=True, exist_ok=True)
        write_checkpoint(out, folded)
    except (UmcError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    info = folded["infos"]["umc"]
    print(f"{out}: {info['robot']}, {info['model']}; go on with --task {info['task']} --agent {info['model']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
