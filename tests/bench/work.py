# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same work twice: as sections of a host, and as people write it with other collections.

Six modules with their options, thirty kernel parameters and two page pools: 38 items, in three sections. A boot
argument is a section by itself, on the same hosts.
"""

from __future__ import annotations

from typing import Any

# What the parameters are to be, and what they are before. The live files of a simulated host are plain ones, in which a
# shorter value leaves the end of a longer one: both have as many characters.
SYSCTLS: dict[str, tuple[str, str]] = {
    "vm.swappiness": ("10", "60"),
    "vm.dirty_ratio": ("10", "20"),
    "vm.dirty_background_ratio": ("5", "9"),
    "vm.max_map_count": ("262144", "165530"),
    "vm.overcommit_memory": ("1", "0"),
    "vm.min_free_kbytes": ("262144", "167584"),
    "vm.zone_reclaim_mode": ("1", "0"),
    "vm.vfs_cache_pressure": ("200", "100"),
    "fs.file-max": ("2097152", "1048576"),
    "fs.inotify.max_user_watches": ("524288", "165536"),
    "fs.inotify.max_user_instances": ("512", "128"),
    "fs.aio-max-nr": ("1048576", "9065536"),
    "kernel.pid_max": ("4194304", "1032768"),
    "kernel.threads-max": ("2061584", "1061584"),
    "kernel.numa_balancing": ("0", "1"),
    "kernel.sched_autogroup_enabled": ("0", "1"),
    "kernel.panic": ("10", "90"),
    "kernel.panic_on_oops": ("1", "0"),
    "kernel.watchdog_thresh": ("30", "10"),
    "kernel.hung_task_timeout_secs": ("300", "120"),
    "net.core.somaxconn": ("8192", "4096"),
    "net.core.netdev_max_backlog": ("5000", "1000"),
    "net.core.rmem_max": ("268435", "212992"),
    "net.core.wmem_max": ("268435", "212992"),
    "net.ipv4.tcp_max_syn_backlog": ("8192", "1024"),
    "net.ipv4.tcp_fin_timeout": ("15", "60"),
    "net.ipv4.tcp_tw_reuse": ("1", "2"),
    "net.ipv4.tcp_slow_start_after_idle": ("0", "1"),
    "net.ipv4.tcp_keepalive_time": ("1200", "7200"),
    "net.ipv4.tcp_mtu_probing": ("1", "0"),
}
MODULES: dict[str, str] = {
    "loop": "max_loop=8",
    "softdog": "soft_margin=30",
    "dummy": "numdummies=4",
    "zram": "num_devices=2",
    "kvm": "halt_poll_ns=100000",
    "nf_conntrack": "hashsize=32768",
}
POOLS = {"2048kB": 8, "1048576kB": 2}
ARGUMENT = "intel_iommu=on"
GRUB = "/etc/default/grub"

WANTED = {name: wanted for name, (wanted, _before) in SYSCTLS.items()}
SECTIONS: dict[str, dict[str, Any]] = {
    "kernel-modules": {"load": list(MODULES), "options": dict(MODULES)},
    "sysctl": dict(WANTED),
    "hugepages": {"pages2m": POOLS["2048kB"], "pages1g": POOLS["1048576kB"]},
}
ARGUMENT_SECTION: dict[str, dict[str, Any]] = {"iommu": {}}


def sysctl_tasks() -> list[dict[str, Any]]:
    """The parameters by ansible.posix.sysctl, in a loop."""
    task = {
        "name": "Set kernel parameters",
        "ansible.posix.sysctl": {
            "name": "{{ item.key }}",
            "value": "{{ item.value }}",
            "sysctl_file": "/etc/sysctl.d/90-site.conf",
            "sysctl_set": True,
        },
        "loop": "{{ parameters | dict2items }}",
    }
    return [{**task, "vars": {"parameters": WANTED}}]


def module_tasks() -> list[dict[str, Any]]:
    """The modules by community.general.modprobe, in a loop."""
    given = {"name": "{{ item.key }}", "params": "{{ item.value }}", "state": "present", "persistent": "present"}
    return [
        {
            "name": "Load kernel modules",
            "community.general.modprobe": given,
            "loop": "{{ modules | dict2items }}",
            "vars": {"modules": MODULES},
        }
    ]


def pool_tasks() -> list[dict[str, Any]]:
    """Each page pool by two commands, one that looks and one that writes where it differs."""
    place = "/sys/kernel/mm/hugepages/hugepages-{{ item.key }}/nr_hugepages"
    return [
        {
            "name": "Look at the page pools",
            "ansible.builtin.command": {"cmd": f"cat {place}"},
            "changed_when": False,
            "register": "pools",
            "loop": "{{ wanted | dict2items }}",
            "vars": {"wanted": POOLS},
        },
        {
            "name": "Size the page pools",
            "ansible.builtin.shell": {
                "cmd": "echo {{ item.item.value }} > " + place.replace("item.key", "item.item.key")
            },
            "when": "item.stdout | int != item.item.value",
            "loop": "{{ pools.results }}",
            "loop_control": {"label": "{{ item.item.key }}"},
        },
    ]


def argument_tasks() -> list[dict[str, Any]]:
    """The boot argument by lineinfile and the command that makes the loader's configuration."""
    return [
        {
            "name": "Have a boot argument",
            "ansible.builtin.lineinfile": {
                "path": GRUB,
                "regexp": "^GRUB_CMDLINE_LINUX=",
                "line": f'GRUB_CMDLINE_LINUX="{ARGUMENT}"',
            },
            "register": "grub",
        },
        {
            "name": "Make the loader's configuration",
            "ansible.builtin.command": {"cmd": "update-grub"},
            "when": "grub is changed",
        },
    ]


CHANGES = 3  # of peer_tasks where none of it is done: a loop is one, and the look at the pools changes nothing


def peer_tasks() -> list[dict[str, Any]]:
    """All but the boot argument."""
    return [*module_tasks(), *sysctl_tasks(), *pool_tasks()]
