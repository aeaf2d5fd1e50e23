# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Builds the USD files of the robots from public descriptions: ``python -m umc.robots.builder a1 g1 h1 solo8``.

A new robot is one recipe file like ``a1.py``, entered in :data:`RECIPES`.
"""

from pathlib import Path

from umc.robots.builder.a1 import RECIPE as A1
from umc.robots.builder.g1 import RECIPE as G1
from umc.robots.builder.h1 import RECIPE as H1
from umc.robots.builder.model import compile_model
from umc.robots.builder.recipe import Recipe
from umc.robots.builder.solo8 import RECIPE as SOLO8
from umc.robots.builder.usd import write_usd

RECIPES = {recipe.name: recipe for recipe in (A1, G1, H1, SOLO8)}
"""Every robot that can be built, by name."""


def build(recipe: Recipe, folder: Path) -> Path:
    """Build one robot.

    Args:
        recipe: Its recipe.
        folder: Where to write ``<name>.usda``.

    Returns:
        The file written.
    """
    model, velocity_limits = compile_model(recipe)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{recipe.name}.usda"
    write_usd(model, velocity_limits, recipe, path)
    return path


__all__ = ["RECIPES", "Recipe", "build"]
