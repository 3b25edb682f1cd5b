/* Copyright (c) 2026 bettercompute
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Puts NVIDIA devices on a PCI bus of their own, since QEMU emulates none. The kernel's own PCI code enumerates them:
 * sysfs, uevents, module aliases and drivers that bind are what they are with real cards. They have a configuration
 * space and no memory. devices=0x2330 are GPUs, switches=0x22a3 NVSwitches. What is plugged in stays until a reboot.
 */
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/unaligned.h>

#define VENDOR 0x10de
#define DOMAIN 1
#define BUS 0x17
#define MOST 8
#define SPACE 256

static unsigned short devices[MOST];
static unsigned short switches[MOST];
static int device_count, switch_count;
module_param_array(devices, ushort, &device_count, 0444);
module_param_array(switches, ushort, &switch_count, 0444);

static unsigned char spaces[2 * MOST][SPACE];
static struct pci_sysdata place = { .domain = DOMAIN, .node = NUMA_NO_NODE };

static void fill(int slot, unsigned short device, unsigned int class)
{
	unsigned char *space = spaces[slot];

	put_unaligned_le16(VENDOR, space + PCI_VENDOR_ID);
	put_unaligned_le16(device, space + PCI_DEVICE_ID);
	put_unaligned_le32(class << 16 | 0xa1, space + PCI_CLASS_REVISION);
	put_unaligned_le16(VENDOR, space + PCI_SUBSYSTEM_VENDOR_ID);
	put_unaligned_le16(device, space + PCI_SUBSYSTEM_ID);
}

static unsigned char *cell(unsigned int devfn, int where, int size)
{
	int slot = PCI_SLOT(devfn);

	if (PCI_FUNC(devfn) || slot >= device_count + switch_count || where + size > SPACE)
		return NULL;
	return spaces[slot] + where;
}

static int get(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *value)
{
	unsigned char *from = cell(devfn, where, size);

	*value = ~0;
	if (!from)
		return PCIBIOS_DEVICE_NOT_FOUND;
	*value = size == 1 ? *from : size == 2 ? get_unaligned_le16(from) : get_unaligned_le32(from);
	return PCIBIOS_SUCCESSFUL;
}

static int put(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	unsigned char *to = cell(devfn, where, size);

	if (!to)
		return PCIBIOS_DEVICE_NOT_FOUND;
	/* Only the command word can be written: a base address that stays 0 is one that is not there. */
	if (where == PCI_COMMAND && size >= 2)
		put_unaligned_le16(value, to);
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops ways = { .read = get, .write = put };

static int __init plug(void)
{
	struct pci_bus *bus;
	int at;

	for (at = 0; at < device_count; at++)
		fill(at, devices[at], PCI_CLASS_DISPLAY_3D);
	for (at = 0; at < switch_count; at++)
		fill(device_count + at, switches[at], PCI_CLASS_BRIDGE_OTHER);
	bus = pci_scan_bus(BUS, &ways, &place);
	if (!bus)
		return -ENODEV;
	pci_bus_add_devices(bus);
	return 0;
}

module_init(plug);
MODULE_DESCRIPTION("NVIDIA devices on a PCI bus, for the lab");
MODULE_LICENSE("GPL");
