# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which CDI version a runtime reads."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.cdi_support import highest, reads
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.program_version import release_in, version_in


@pytest.mark.parametrize(
    ("runtime", "release", "version"),
    [
        ("podman", (4, 0, 9), ""),
        ("podman", (4, 3, 1), "0.5.0"),  # Debian 12
        ("podman", (4, 9, 3), "0.6.0"),  # Ubuntu 24.04
        ("podman", (5, 0, 3), "0.6.0"),
        ("podman", (5, 4, 2), "0.8.0"),
        ("podman", (5, 5), "1.0.0"),
        ("containerd", (1, 6, 20), ""),
        ("containerd", (1, 7, 11), "0.5.0"),
        ("containerd", (1, 7, 12), "0.6.0"),
        ("containerd", (1, 7, 24), "0.7.0"),
        ("containerd", (1, 7, 27), "0.8.0"),
        ("containerd", (2, 0, 0), "0.8.0"),
        ("containerd", (2, 1, 9), "1.0.0"),
        ("docker", (24, 0, 7), ""),
        ("docker", (26, 0, 0), "0.6.0"),
        ("docker", (27, 3, 1), "0.7.0"),
        ("docker", (28, 2, 0), "1.0.0"),
        ("crio", (1, 29, 1), "0.6.0"),
        ("crio", (1, 32, 0), "0.8.0"),
        ("crio", (1, 33, 0), "1.0.0"),
    ],
)
def test_the_highest_version(runtime: str, release: tuple[int, ...], version: str) -> None:
    assert highest(runtime, release) == version
    assert reads(runtime, release, "0.3.0") is bool(version)
    if version:
        assert reads(runtime, release, version)
        assert reads(runtime, release, "1.1.0") is False


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("podman version 4.3.1", (4, 3, 1)),
        ("containerd github.com/containerd/containerd v2.1.3 0123abc", (2, 1, 3)),
        ("containerd containerd.io 1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da", (1, 7, 27)),
        ("Docker version 28.5.2+dfsg4, build 3ef3c07", (28, 5, 2)),
        ("crio version 1.30.0\nVersion:        1.30.0\n", (1, 30, 0)),
        ("NVIDIA Container Toolkit CLI version 1.17.4\ncommit: 9b69590c7428470a72f2ae05f826412976af1395\n", (1, 17, 4)),
        ("what?", None),
    ],
)
def test_the_release_that_is_printed(text: str, release: tuple[int, ...] | None) -> None:
    assert release_in(text) == release
    assert version_in(text).partition("+")[0] == ".".join(map(str, release or ()))
