/* Copyright (c) 2026 bettercompute
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A process that opens the device nodes that are there, or those that its arguments name, and keeps them open until
 * it is asked to end. Installed as nvidia-persistenced, as nv-fabricmanager, and as a job on a GPU.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static int take(const char *path)
{
	return open(path, O_RDWR | O_CLOEXEC) >= 0;
}

int main(int count, char **words)
{
	char path[64];
	int at;

	for (at = 1; at < count; at++)
		if (!take(words[at])) {
			perror(words[at]);
			return 1;
		}
	if (count == 1) {
		take("/dev/nvidiactl");
		for (at = 0; at < 16; at++) {
			snprintf(path, sizeof(path), "/dev/nvidia%d", at);
			take(path);
		}
	}
	for (;;)
		pause();
}
