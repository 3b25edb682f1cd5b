# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths of a tree: resolved as the simulated host would, so that no link leads out of it."""

from __future__ import annotations

import os

LINKS = 40


def inside(tree: str, path: str) -> str:
    """The path on this machine of a path of the simulated host; symbolic links are followed within the tree."""
    parts = [part for part in path.split("/") if part]
    done: list[str] = []
    followed = 0
    while parts:
        part = parts.pop(0)
        if part == "..":
            done = done[:-1]
            continue
        if part == ".":
            continue
        here = "/".join([tree.rstrip("/"), *done, part])
        if not os.path.islink(here):
            done.append(part)
            continue
        followed += 1
        if followed > LINKS:
            raise OSError(f"{path}: too many links")
        target = os.readlink(here)
        if target.startswith("/"):
            done = []
        parts = [piece for piece in target.split("/") if piece] + parts
    return "/".join([tree.rstrip("/"), *done]) or "/"
