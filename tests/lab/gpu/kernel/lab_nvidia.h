/* Copyright (c) 2026 bettercompute
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the lab's stand-in for NVIDIA's driver is built with, and what its modules ask of each other.
 * LAB_VERSION is the full version; LAB_OPEN is 1 for the open flavour.
 *
 * Whoever loads the proprietary flavour's modules uses no symbol that is exported to GPL code alone: the kernel would
 * refuse the module. That a module which leans on it is under another licence does not help, the kernel looks at both.
 */
#ifndef LAB_NVIDIA_H
#define LAB_NVIDIA_H

#define LAB_MAJOR 195
#define LAB_CONTROL_MINOR 255

#if LAB_OPEN
#define LAB_LICENSE "Dual MIT/GPL"
#else
#define LAB_LICENSE "NVIDIA"
#endif

/* Each module but the first calls one function of the one below it, which is all that it takes to hold it. */
void nvidia_lab_hold(void);
void nvidia_modeset_lab_hold(void);

#endif
