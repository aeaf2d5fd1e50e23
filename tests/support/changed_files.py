# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What tests put into files that are then to be refused."""

import os


class Bomb:
    """Leaves a folder behind when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def put(value, *keys):
    """A change of nested content that sets a value, or removes it if it is None."""

    def change(content):
        for key in keys[:-1]:
            content = content[key]
        if value is None:
            del content[keys[-1]]
        else:
            content[keys[-1]] = value

    return change
