# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests of several units take."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.control_plane import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A cluster of the test's own, which has a token to join with."""
    with Cluster() as made:
        made.token()
        yield made
