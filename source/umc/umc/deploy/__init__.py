# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Export of a policy, and a runner for robots that needs only numpy and onnxruntime."""
