/* Copyright (c) 2026 bettercompute
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Stands on nvidia, with a device of its own under a major that the kernel picks.
 */
#include <linux/fs.h>
#include <linux/module.h>

#include "lab_nvidia.h"

static int major;

static const struct file_operations devices = {
	.owner = THIS_MODULE,
};

static int __init start(void)
{
	nvidia_lab_hold();
	major = register_chrdev(0, "nvidia-uvm", &devices);
	return major < 0 ? major : 0;
}

static void __exit stop(void)
{
	unregister_chrdev(major, "nvidia-uvm");
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("The lab's stand-in for NVIDIA's unified memory driver");
MODULE_LICENSE("Dual MIT/GPL"); /* in both flavours, as the real one */
MODULE_VERSION(LAB_VERSION);
