# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Find faults from what a robot measures: the network, its labels, its decision, its file."""

from umc.detection.file import DetectorFile, read_detector, write_detector
from umc.detection.network import JOINT_KINDS, NETWORKS, SENSOR_KINDS, Detection, Detector, DetectorCfg, mask_and_flag
