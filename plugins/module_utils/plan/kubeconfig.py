# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a kubeconfig says of a cluster and of us: read at once as the kubelet writes its own, else as YAML."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from ..core.named import NamedTuple

MEND = "see who wrote it, and let kubeadm join the machine again (kubeadm reset first)"
# To the letter, with values that are texts to every reader of YAML. In a file like it there is nothing else to be read.
WRITTEN = re.compile(
    r"apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: (LS0tLS1C[A-Za-z0-9+/=]*)\n"
    r"    server: (https://[a-z0-9.:\[\]-]*[a-z0-9\]])\n  name: default-cluster\n"
    r"contexts:\n- context:\n    cluster: default-cluster\n    namespace: default\n    user: default-auth\n"
    r"  name: default-context\ncurrent-context: default-context\nkind: Config\n(?:preferences: \{\}\n)?"
    r"users:\n- name: default-auth\n  user:\n    client-certificate: (/[A-Za-z0-9/._-]+)\n"
    r"    client-key: /[A-Za-z0-9/._-]+\n"
)


class Kubeconfig(NamedTuple):
    """The server's address, its CA (PEM, or the path of a file), and the user's certificate (PEM, or the path)."""

    server: str
    ca: str = ""
    ca_file: str = ""
    certificate: str = ""
    certificate_file: str = ""


def read(text: str, path: str) -> Kubeconfig:
    """What the file says of the current context; raises Refused naming the path where it cannot be read."""
    found = WRITTEN.fullmatch(text)
    if found is not None:
        from base64 import b64decode

        try:
            ca = b64decode(found.group(1), validate=True).decode("ascii")
            return Kubeconfig(found.group(2), ca, certificate_file=found.group(3))
        except ValueError:
            pass  # it is told by the other reader
    from .kubeconfig_yaml import read as read_yaml

    return read_yaml(text, path)
