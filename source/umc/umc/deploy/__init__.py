# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Export of a policy, and what runs it on a robot with numpy and onnxruntime alone."""
