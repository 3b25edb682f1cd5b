# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for a Kubernetes cluster and for kubeadm, kubelet and kubectl of a machine that joins it.

The control plane (`control_plane.Cluster`) is a real HTTPS server with an authority of its own. The programs are
functions over a `worker.Worker`, which says what a machine is like: a dictionary of files, a folder, or the machine
itself (`python -m tests.cluster`). What they print and leave behind is what the programs of the versions 1.22 to 1.36
do, as recorded in tests/captures/kubernetes and as Kubernetes' sources say.

The one thing that is easier than in a real cluster: who asks for a client certificate is given its key with it, so
that no program here needs a library for keys.
"""
