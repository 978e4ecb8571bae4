// SPDX-License-Identifier: GPL-2.0
/*
 * What lies in frames that nobody has. Run in the guest, by groups.sh.
 *
 *   left fill MIB            takes memory, writes a word of its own to the beginning of each page, and ends
 *   left count COLORS        COLORS: a hexadecimal mask; prints how many frames of these colours still begin
 *                            with that word, as /proc/kcore shows them. A frame that was cleared does not
 *
 * Colour = bits 12-15 of the physical address, as run.sh sets the map.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096UL
#define NR_COLORS 16
#define WORD 0x6672616d65206c66ULL
#define MOST 1024

static void die(const char *what)
{
	fprintf(stderr, "left: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void fill(unsigned long mib)
{
	char *at = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		die("mmap");
	for (unsigned long i = 0; i < mib << 20; i += PAGE)
		*(volatile uint64_t *)(at + i) = WORD;
}

/* Counts in the frames of a part of the memory. */
static unsigned long count_in(int fd, const Elf64_Phdr *part, unsigned long colors)
{
	unsigned long n = 0;
	uint64_t word;

	for (uint64_t i = 0; i + PAGE <= part->p_memsz; i += PAGE) {
		if (!(colors >> (part->p_paddr + i) / PAGE % NR_COLORS & 1))
			continue;
		if (pread(fd, &word, sizeof(word), part->p_offset + i) != sizeof(word))
			die("/proc/kcore");
		n += word == WORD;
	}
	return n;
}

static unsigned long count(unsigned long colors)
{
	static Elf64_Phdr parts[MOST];
	int fd = open("/proc/kcore", O_RDONLY);
	unsigned long n = 0, memory = 0;
	Elf64_Ehdr head;

	if (fd < 0 || pread(fd, &head, sizeof(head), 0) != sizeof(head))
		die("/proc/kcore");
	if (head.e_phnum > MOST ||
	    pread(fd, parts, sizeof(*parts) * head.e_phnum, head.e_phoff) != (ssize_t)(sizeof(*parts) * head.e_phnum))
		die("/proc/kcore: its parts");
	for (unsigned int i = 0; i < head.e_phnum; i++) {
		const Elf64_Phdr *part = &parts[i];

		/* Parts that are no memory have no address in it, and the kernel's text has a second one. */
		if (part->p_type != PT_LOAD || part->p_paddr == UINT64_MAX || part->p_vaddr >= UINT64_MAX - UINT32_MAX)
			continue;
		memory += part->p_memsz / PAGE;
		n += count_in(fd, part, colors);
	}
	if (!memory) {
		fprintf(stderr, "left: /proc/kcore: no part of it is memory\n");
		exit(2);
	}
	return n;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "fill")) {
		fill(strtoul(argv[2], NULL, 10));
	} else if (argc == 3 && !strcmp(argv[1], "count")) {
		printf("%lu\n", count(strtoul(argv[2], NULL, 16)));
	} else {
		fprintf(stderr, "usage: left fill MIB | left count COLORS\n");
		return 2;
	}
	return 0;
}
