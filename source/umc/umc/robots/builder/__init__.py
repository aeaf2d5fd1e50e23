# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Builds USD and MJCF files of robots from public URDFs: ``python -m umc.robots.builder a1 g1 go2 h1 solo8``.

A new robot is one file like ``a1.py``, entered in :data:`BUILD_CFGS`.
"""

from pathlib import Path

from umc.robots.builder.a1 import A1_BUILD_CFG
from umc.robots.builder.cfg import BuildCfg
from umc.robots.builder.g1 import G1_BUILD_CFG
from umc.robots.builder.go2 import GO2_BUILD_CFG
from umc.robots.builder.h1 import H1_BUILD_CFG
from umc.robots.builder.mjcf import write_mjcf
from umc.robots.builder.model import compile_model
from umc.robots.builder.solo8 import SOLO8_BUILD_CFG
from umc.robots.builder.usd import visuals_name, write_usd
from umc.robots.builder.visuals import write_visuals

BUILD_CFGS = {cfg.name: cfg for cfg in (A1_BUILD_CFG, G1_BUILD_CFG, GO2_BUILD_CFG, H1_BUILD_CFG, SOLO8_BUILD_CFG)}
"""Every robot of this package that can be built, by name."""


def build(cfg: BuildCfg, folder: Path) -> Path:
    """Write ``<name>.usda`` for Newton and PhysX and ``<name>.xml`` for MuJoCo; return the path of the USD."""
    model, velocity_limits = compile_model(cfg)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{cfg.name}.usda"
    write_usd(model, velocity_limits, cfg, path)
    write_mjcf(model, cfg, path.with_suffix(".xml"))
    return path


def build_visuals(cfg: BuildCfg, folder: Path, meshes: Path | None = None) -> Path:
    """Write the visual meshes that ``<name>.usda`` refers to and return their path; ``meshes`` as for write_visuals."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / visuals_name(cfg)
    write_visuals(cfg, path, meshes)
    return path


__all__ = ["BUILD_CFGS", "BuildCfg", "build", "build_visuals"]
