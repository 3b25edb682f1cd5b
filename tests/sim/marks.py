# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a test on simulated hosts may need of the machine that it runs on."""

from __future__ import annotations

import os

import pytest

from tests.sim import mode

WHY = mode.refusal()
# Services, shells and other programs of a simulated host run in it only there. `make test` names what is left out, and
# .ci/run counts it as a failure.
in_namespace = pytest.mark.skipif(bool(WHY), reason=f"its programs run in a namespace, and none can be made: {WHY}")
# One account's rights end at another's files and sockets only where the kernel knows two: a namespace that an ordinary
# user makes has one.
with_accounts = pytest.mark.skipif(
    os.geteuid() != 0 or bool(WHY), reason=WHY or "only root can log in to a simulated host as an account of it"
)
