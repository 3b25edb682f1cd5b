/* Copyright (c) 2026 bettercompute
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Stands on nvidia-modeset.
 */
#include <linux/module.h>

#include "lab_nvidia.h"

static int __init start(void)
{
	nvidia_modeset_lab_hold();
	return 0;
}

static void __exit stop(void)
{
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("The lab's stand-in for NVIDIA's DRM driver");
#if LAB_OPEN
MODULE_LICENSE(LAB_LICENSE);
#else
MODULE_LICENSE("MIT"); /* the kernel counts that as proprietary all the same */
#endif
MODULE_VERSION(LAB_VERSION);
