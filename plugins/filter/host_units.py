# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter host_units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

DOCUMENTATION = r"""
name: host_units
short_description: The units of a host, from its pool and its profile
version_added: 0.1.0
description:
  - Renders the section of a host, the mapping C(units) of M(bettercompute.bcd.host_section), from a pool and a profile
    of a FleetConfig.
  - The units of the profile's C(hostConfig) are taken, each where its C(when) holds for the host's labels. What the
    pool's C(policy) makes replaces the unit of the same name as a whole.
  - C(policy.hugepages), C(kernelModules), C(cpu), C(iommu), C(gpu), C(kubernetes) and C(sharing) become units.
    C(sharing) has 10 slots for C(mps) and 4 for C(timeslice) where C(replicas) does not say. C(policy.migLayout) goes
    into a C(mig-layout) that says C(from=pool).
  - What a host would refuse is refused here, all of it at once, a line each with its path.
positional: profile, labels, gpus, frozen_layout
options:
  _input:
    description: The pool, as in a FleetConfig. Its C(hosts) are not looked at.
    type: dict
    required: true
  profile:
    description: The profile, with its C(hostConfig). Without one only the pool's policy makes units.
    type: dict
  labels:
    description:
      - The labels of the host. Those of the pool lie below them, and C(pool), C(site) and C(class) are always the
        pool's.
    type: dict
  gpus:
    description:
      - The GPUs of the host, as M(bettercompute.bcd.host_info) returns them. Where one that is in use shows another
        layout than it would get, the whole host keeps what its GPUs show.
      - Without them the pool's layout is rendered; the host itself changes no GPU that is in use.
    type: list
    elements: dict
  frozen_layout:
    description: A layout that goes into C(mig-layout) in place of the pool's, whatever the GPUs show.
    type: raw
seealso:
  - module: bettercompute.bcd.host_section
  - plugin: bettercompute.bcd.to_host_section
    plugin_type: filter
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Show the units of a host
  ansible.builtin.debug:
    msg: "{{ pool | bettercompute.bcd.host_units(profile=profile, labels={'cpu.vendor': 'amd'}) }}"
  vars:
    pool:
      name: sandbox-fra
      site: fra
      class: vps-host
      policy:
        hugepages: {size: 1Gi, count: 64, perNuma: true}
        cpu: {governor: performance, isolate: 4-63}
    profile:
      name: deploy
      hostConfig:
        kernel-modules: {load: [kvm_amd], when: cpu.vendor == 'amd'}
"""

RETURN = r"""
_value:
  description: Settings in wire form by unit, sorted by name.
  type: dict
"""


def host_units(
    pool: Any, profile: Any = None, labels: Any = None, gpus: Any = None, frozen_layout: Any = None
) -> dict[str, dict[str, Any]]:
    """The units of the host."""
    from ..plugin_utils.host_units import render

    try:
        return render(pool, profile, labels, gpus, frozen_layout)
    except ValueError as fault:
        raise AnsibleFilterError(str(fault)) from fault


class FilterModule:
    """The filter host_units."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Its name."""
        return {"host_units": host_units}
