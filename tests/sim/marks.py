# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a test on simulated hosts may need of the machine that it runs on."""

from __future__ import annotations

import pytest

from tests.sim import mode

WHY = mode.refusal()
# Services, shells and other programs of a simulated host run in it only there. `make test` names what is left out, and
# .ci/run counts it as a failure.
in_namespace = pytest.mark.skipif(bool(WHY), reason=f"its programs run in a namespace, and none can be made: {WHY}")
