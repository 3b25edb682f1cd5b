/* Copyright (c) 2026 bettercompute
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A driver that does nothing, and shows what a host sees of the real one: /proc/driver/nvidia, the character devices
 * of major 195 whose opening holds the module, parameters, a refusal to load where no NVIDIA GPU is on the bus.
 */
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

#include "lab_nvidia.h"

#define VENDOR 0x10de
#define MOST 16

static int NVreg_EnableGpuFirmware = 18;
static int NVreg_ModifyDeviceFiles = 1;
static int NVreg_PreserveVideoMemoryAllocations;
/* As the real one has it, none is in /sys/module/nvidia/parameters: /proc/driver/nvidia/params tells them. */
module_param(NVreg_EnableGpuFirmware, int, 0);
module_param(NVreg_ModifyDeviceFiles, int, 0);
module_param(NVreg_PreserveVideoMemoryAllocations, int, 0);

static struct pci_dev *gpus[MOST];
static int count;
static int switches;
static struct proc_dir_entry *folder, *gpu_folder, *switch_folder;

struct product {
	unsigned short device;
	const char *name;
};

static const struct product products[] = {
	{ 0x1db4, "Tesla V100-PCIE-16GB" },
	{ 0x20b0, "NVIDIA A100-SXM4-40GB" },
	{ 0x2330, "NVIDIA H100 80GB HBM3" },
	{ 0x2901, "NVIDIA B200" },
};

static const char *product(struct pci_dev *dev)
{
	int at;

	for (at = 0; at < ARRAY_SIZE(products); at++)
		if (products[at].device == dev->device)
			return products[at].name;
	return "Unknown";
}

static int version_show(struct seq_file *out, void *unused)
{
#if LAB_OPEN
	seq_puts(out, "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  " LAB_VERSION
		      "  Release Build  (lab@lab)  Tue Sep 23 09:55:41 UTC 2025\n");
#else
	seq_puts(out, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " LAB_VERSION
		      "  Tue Sep 23 10:11:16 UTC 2025\n");
#endif
	seq_puts(out, "GCC version:  gcc version " __VERSION__ "\n");
	return 0;
}

static int params_show(struct seq_file *out, void *unused)
{
	seq_printf(out, "ModifyDeviceFiles: %d\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n",
		   NVreg_ModifyDeviceFiles);
	seq_printf(out, "EnableGpuFirmware: %d\nPreserveVideoMemoryAllocations: %d\n", NVreg_EnableGpuFirmware,
		   NVreg_PreserveVideoMemoryAllocations);
	return 0;
}

static int information_show(struct seq_file *out, void *unused)
{
	struct pci_dev *dev = out->private;
	int minor;

	for (minor = 0; minor < count && gpus[minor] != dev; minor++)
		;
	seq_printf(out, "Model: \t\t %s\nIRQ:   \t\t %d\n", product(dev), dev->irq);
	/* An UUID is the board's: the same whatever driver looks at it. */
	seq_printf(out, "GPU UUID: \t GPU-%04x%04x-0000-4000-8000-%08x%04x\n", dev->vendor, dev->device,
		   pci_domain_nr(dev->bus), dev->bus->number << 8 | dev->devfn);
	seq_printf(out, "Bus Type: \t PCIe\nBus Location: \t %04x:%02x:%02x.%d\nDevice Minor: \t %d\n",
		   pci_domain_nr(dev->bus), dev->bus->number, PCI_SLOT(dev->devfn), PCI_FUNC(dev->devfn), minor);
	return 0;
}

static int switch_show(struct seq_file *out, void *unused)
{
	seq_puts(out, "Fabric State: \t NVSwitch of the lab\n");
	return 0;
}

static int hold(struct inode *inode, struct file *file)
{
	unsigned int minor = iminor(inode);

	/* That this file is open holds the module: the kernel took the reference before it called. */
	return minor < count || minor == LAB_CONTROL_MINOR ? 0 : -ENXIO;
}

static const struct file_operations devices = {
	.owner = THIS_MODULE,
	.open = hold,
};

static int probe(struct pci_dev *dev, const struct pci_device_id *id)
{
	struct proc_dir_entry *own;

	if (dev->class >> 8 == PCI_CLASS_BRIDGE_OTHER) {
		if (!switches)
			switch_folder = proc_mkdir("devices", proc_mkdir("driver/nvidia-nvswitch", NULL));
		switches++;
		proc_create_single_data(pci_name(dev), 0444, switch_folder, switch_show, NULL);
		return 0;
	}
	if (count == MOST)
		return -ENOSPC;
	own = proc_mkdir(pci_name(dev), gpu_folder);
	if (!own)
		return -ENOMEM;
	gpus[count++] = dev;
	proc_create_single_data("information", 0444, own, information_show, dev);
	return 0;
}

static void remove(struct pci_dev *dev)
{
}

static const struct pci_device_id ids[] = {
	{ PCI_DEVICE(VENDOR, PCI_ANY_ID), .class = PCI_CLASS_DISPLAY_VGA << 8, .class_mask = ~0 },
	{ PCI_DEVICE(VENDOR, PCI_ANY_ID), .class = PCI_CLASS_DISPLAY_3D << 8, .class_mask = ~0 },
	{ PCI_DEVICE(VENDOR, PCI_ANY_ID), .class = PCI_CLASS_BRIDGE_OTHER << 8, .class_mask = ~0 },
	{}
};
MODULE_DEVICE_TABLE(pci, ids);

static struct pci_driver driver = {
	.name = "nvidia",
	.id_table = ids,
	.probe = probe,
	.remove = remove,
};

static void clear(void)
{
	remove_proc_subtree("driver/nvidia", NULL);
	if (switches)
		remove_proc_subtree("driver/nvidia-nvswitch", NULL);
}

static int __init start(void)
{
	int status;

	folder = proc_mkdir("driver/nvidia", NULL);
	if (!folder)
		return -ENOMEM;
	gpu_folder = proc_mkdir("gpus", folder);
	proc_create_single_data("version", 0444, folder, version_show, NULL);
	proc_create_single_data("params", 0444, folder, params_show, NULL);
	status = register_chrdev(LAB_MAJOR, "nvidia", &devices);
	if (status < 0)
		goto no_devices;
	status = pci_register_driver(&driver);
	if (status)
		goto no_driver;
	if (!count) {
		pr_err("NVRM: No NVIDIA GPU found.\n");
		status = -ENODEV;
		pci_unregister_driver(&driver);
		goto no_driver;
	}
	return 0;
no_driver:
	unregister_chrdev(LAB_MAJOR, "nvidia");
no_devices:
	clear();
	return status;
}

static void __exit stop(void)
{
	pci_unregister_driver(&driver);
	unregister_chrdev(LAB_MAJOR, "nvidia");
	clear();
}

void nvidia_lab_hold(void)
{
}
EXPORT_SYMBOL(nvidia_lab_hold);

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("The lab's stand-in for NVIDIA's driver");
MODULE_LICENSE(LAB_LICENSE);
MODULE_VERSION(LAB_VERSION);
MODULE_ALIAS("char-major-195-*");
MODULE_INFO(supported, "external");
