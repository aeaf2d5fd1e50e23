# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What an export of A1 says about starts and falls; tests/deploy/test_export.py compares it with the task."""

A1 = {
    "feet": ["FL_calf", "FR_calf", "RL_calf", "RR_calf"],
    "start": {
        "base_height_m": 0.38,
        "yaw_rad": [-0.1, 0.1],
        "base_velocity_m_rad_per_s": [[-0.2, 0.2]] * 6,
        "joint_position_factor": [0.5, 1.5],
        "soft_limit_factor": 0.9,
        "friction": [0.5, 1.5],
        "added_base_mass_kg": [1.0, 3.0],
        "base_com_shift_m": [[-0.05, 0.15], [-0.1, 0.1], [-0.05, 0.05]],
        "kp_factor": [0.9, 1.1],
        "kd_factor": [0.9, 1.1],
        "other_events": [],
    },
    "fall": {
        "contact_bodies": ["trunk|base_link"],
        "contact_force_N": 1.0,
        "contact_history_steps": 3,
        "max_roll_rad": 0.8,
        "max_pitch_rad": 1.6,
        "min_height_m": 0.15,
        "other_terminations": [],
    },
}
