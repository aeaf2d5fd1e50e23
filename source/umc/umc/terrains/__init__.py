# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Grounds that load without a network on every engine."""

from umc.terrains.ground import FLAT_GROUND_CFG, GROUND_MATERIAL
from umc.terrains.perlin import PerlinTrackCfg, perlin_heights, perlin_noise
from umc.terrains.tracks import TrackGeneratorCfg, TrackImporterCfg, ground_name, perlin_tracks
