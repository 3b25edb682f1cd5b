# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup program."""

from __future__ import annotations

DOCUMENTATION = r"""
name: program
short_description: The program bcd of this collection, as a file on the controller
version_added: 0.1.0
description:
  - Makes the program C(bcd) of the collection's own code, one zip that Python runs, and returns where it lies.
  - The same collection makes the same bytes, on every controller.
  - The file lies in Ansible's temporary folder of this run, and goes with it.
options:
  _terms:
    description: None are taken.
    required: false
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Keep the program for a host that no controller reaches
  ansible.builtin.copy:
    src: "{{ lookup('bettercompute.bcd.program').path }}"
    dest: /srv/bcd.pyz
    mode: "0644"
  delegate_to: localhost
"""

RETURN = r"""
_raw:
  description: The program.
  type: list
  elements: dict
  contains:
    path:
      description: Where the file lies on the controller.
      type: str
    version:
      description: The version of the collection.
      type: str
    sha256:
      description: The digest of the file, in hex digits.
      type: str
"""

import os
import tempfile
from typing import Any

from ansible import constants
from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ..plugin_utils.program import program


class LookupModule(LookupBase):
    """The lookup program."""

    def run(self, terms: list[Any], variables: Any = None, **options: Any) -> list[dict[str, str]]:
        """One entry; the file is made once in a run, whole, whichever fork comes first."""
        if terms or options:
            raise AnsibleError("the lookup program takes no terms and no options: leave them out")
        made = program()
        path = os.path.join(constants.DEFAULT_LOCAL_TMP, made.name)
        if not os.path.exists(path):
            _put(path, made.data)
        return [{"path": path, "version": made.version, "sha256": made.sha256}]


def _put(path: str, data: bytes) -> None:
    handle, draft = tempfile.mkstemp(dir=os.path.dirname(path))
    with os.fdopen(handle, "wb") as out:
        out.write(data)
    os.replace(draft, path)
