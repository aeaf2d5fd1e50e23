# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The one exception that a user's mistake raises."""


class UmcError(ValueError):
    """A mistake in the user's input; its message is one line that names the fix."""
