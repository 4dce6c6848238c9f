/*
 * boot.S - from the loader's 32-bit mode to kernel C at its high address.
 *
 * There are two entries, both in protected mode with paging off: Multiboot2 (specification 2.0,
 * 3.3: EAX magic, EBX information) and PVH (Xen docs/misc/pvh: EBX start information). All but
 * high_entry is linked at its physical address. The boot tables map the first 4 GiB three times:
 * identity, the direct map, and the kernel image. The identity map ends when kernel/mm builds the
 * final tables.
 */
#include "arch/x86_64/asm.h"

	/* Calls the first C function of a CPU. Tells debuggers that it has no caller. */
	.macro CALL_FIRST function
	.cfi_startproc
	.cfi_undefined %rip
	call \function
	ud2
	.cfi_endproc
	.endm

	.cfi_sections .debug_frame

#define PTE_P 0x1
#define PTE_W 0x2
#define PTE_PS 0x80

/* An element of boot_needs. */
#define NEED_LEAF 0
#define NEED_BIT  4
#define NEED_TEXT 8
#define NEED_SIZE 12

	.section .boot.header, "a"
	.balign 8
mb2_header:
	.long 0xe85250d6		/* magic */
	.long 0				/* i386 protected mode */
	.long mb2_end - mb2_header
	.long -(0xe85250d6 + 0 + (mb2_end - mb2_header))
	.balign 8
	.short 6, 0			/* modules aligned to pages */
	.long 8
	.balign 8
	.short 0, 0			/* end */
	.long 8
mb2_end:

	.section .note.pvh, "a", @note
	.balign 4
	.long 4, 8, 18			/* name, descriptor, XEN_ELFNOTE_PHYS32_ENTRY */
	.asciz "Xen"
	.quad pvh_start

	.section .boot.text, "ax"
	.code32
	.globl boot_start
boot_start:
	cld
	mov $boot_stack_top, %esp
	mov $text_loader, %esi
	cmp $0x36d76289, %eax
	jne boot_refuse
	mov $1, %edi			/* X86_BOOT_MULTIBOOT2 */
	jmp common
pvh_start:
	mov $2, %edi			/* X86_BOOT_PVH */
common:
	cli
	cld
	mov %ebx, %esi
	mov $boot_stack_top, %esp
	lgdt boot_gdt_pointer
	ljmp $SEL_BOOT_CODE32, $1f
1:	mov $SEL_BOOT_DATA, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	call boot_traps_init

	/* A leaf above the highest one, which leaf 0 or 0x80000000 tells, has no bits. */
	mov $boot_needs, %ebp
1:	mov NEED_LEAF(%ebp), %eax
	and $0x80000000, %eax
	cpuid
	cmp NEED_LEAF(%ebp), %eax
	jb lacking
	mov NEED_LEAF(%ebp), %eax
	cpuid
	mov NEED_BIT(%ebp), %ecx
	bt %ecx, %edx
	jnc lacking
	add $NEED_SIZE, %ebp
	cmp $boot_needs_end, %ebp
	jb 1b

	/* 2048 entries of 2 MiB: the first 4 GiB. */
	mov $boot_pd, %ebx
	mov $(PTE_P | PTE_W | PTE_PS), %eax
	mov $2048, %ecx
1:	mov %eax, (%ebx)
	movl $0, 4(%ebx)
	add $0x200000, %eax
	add $8, %ebx
	loop 1b
	mov $(boot_pd + PTE_P + PTE_W), %eax
	mov %eax, boot_pdpt
	mov %eax, boot_pdpt_high + 510 * 8
	add $0x1000, %eax
	mov %eax, boot_pdpt + 8
	add $0x1000, %eax
	mov %eax, boot_pdpt + 16
	add $0x1000, %eax
	mov %eax, boot_pdpt + 24
	mov $(boot_pdpt + PTE_P + PTE_W), %eax
	mov %eax, boot_pml4
	mov %eax, boot_pml4 + 256 * 8
	mov $(boot_pdpt_high + PTE_P + PTE_W), %eax
	mov %eax, boot_pml4 + 511 * 8

	.globl boot_long_mode
boot_long_mode:				/* secondary CPUs join here: %edi is 0 */
	/* PAE only: clears five levels, or RDGSBASE for programs (trap.S), if a loader set them. */
	mov $(1 << 5), %eax
	mov %eax, %cr4
	mov $boot_pml4, %eax
	mov %eax, %cr3
	mov $0xc0000080, %ecx		/* EFER: LME, NXE */
	rdmsr
	or $(1 << 8 | 1 << 11), %eax
	wrmsr
	mov %cr0, %eax
	and $~(1 << 2 | 1 << 30 | 1 << 29), %eax
	or $(1 << 31 | 1 << 16 | 1 << 2 | 1), %eax /* PG, WP, EM: no FPU until cpu.c, PE */
	lidt boot_idt64_pointer
	mov %eax, %cr0
	lgdt boot_gdt_pointer
	ljmp $SEL_BOOT_CODE64, $long_entry
lacking:
	mov NEED_TEXT(%ebp), %esi
	jmp boot_refuse

	.code64
long_entry:
	mov $SEL_BOOT_DATA, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	xor %eax, %eax
	mov %eax, %fs
	mov %eax, %gs
	movabs $high_entry, %rax
	jmp *%rax

	.section .boot.data, "aw"
	.balign 8
boot_gdt:
	.quad 0, 0x00af9a000000ffff, 0x00cf92000000ffff, 0x00cf9a000000ffff
	.globl boot_gdt_pointer
boot_gdt_pointer:
	.short . - boot_gdt - 1
	.long boot_gdt, 0

	/* What the kernel and its programs need of a CPU: a bit of EDX (SDM vol. 2A, CPUID). */
	.macro NEED leaf, bit, name
	.long \leaf, \bit, 9f
	.subsection 1
9:	.asciz "\r\nboot: this CPU lacks \name, which the kernel needs\r\n"
	.subsection 0
	.endm

boot_needs:
	NEED 0x80000001, 29, "long mode (64 bits)"
	NEED 0x80000001, 20, NX
	NEED 0x80000001, 11, SYSCALL
	NEED 1, 4, TSC
	NEED 1, 9, "a local APIC"
	NEED 1, 13, PGE
	NEED 1, 24, FXSR
	NEED 1, 25, SSE
	NEED 1, 26, SSE2
boot_needs_end:
text_loader:
	.asciz "\r\nboot: not started as Multiboot2 or PVH say\r\n"

	.section .boot.bss, "aw", @nobits
	.balign 4096
	.globl boot_pml4
boot_pml4:	.skip 4096
boot_pdpt:	.skip 4096
boot_pdpt_high:	.skip 4096
boot_pd:	.skip 4 * 4096
boot_stack:	.skip 4096
boot_stack_top:

	.text
high_entry:
	test %edi, %edi
	jz secondary
	mov $__boot_stack_top, %rsp
	mov $x86_boot_pcpu, %rax	/* GS base must be set before the first C instruction */
	call set_gs
	xor %ebp, %ebp
	CALL_FIRST x86_start
secondary:
	mov ap_root(%rip), %rax		/* the boot tables do not map its stack */
	mov %rax, %cr3
	mov ap_pcpu(%rip), %rax
	mov ap_stack_top(%rip), %rsp
	call set_gs
	xor %ebp, %ebp
	CALL_FIRST x86_start_secondary

set_gs:
	mov %rax, %rdx
	shr $32, %rdx
	mov $0xc0000101, %ecx
	wrmsr
	ret

	.bss
	.globl ap_pcpu, ap_stack_top, ap_root
ap_root:	.quad 0
ap_pcpu:	.quad 0
ap_stack_top:	.quad 0

	/*
	 * A secondary CPU starts here, in real mode, at the page that the startup interrupt names
	 * (SDM vol. 3A, 8.4.4). smp.c copies this code to AP_PAGE.
	 */
	.section .rodata
	.globl ap_code, ap_code_end
#define AP_PAGE 0x8000
ap_code:
	.code16
	cli
	cld
	xor %ax, %ax
	mov %ax, %ds
	lgdtl (ap_gdt_pointer - ap_code + AP_PAGE)
	mov %cr0, %eax
	or $1, %eax
	mov %eax, %cr0
	ljmpl $8, $(ap_protected - ap_code + AP_PAGE)
	.code32
ap_protected:
	mov $0x10, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	mov $(AP_PAGE + 0x1000), %esp	/* the end of this page, in case of an exception */
	xor %edi, %edi
	mov $boot_long_mode, %eax
	jmp *%eax
	.balign 8
ap_gdt:
	.quad 0, 0x00cf9a000000ffff, 0x00cf92000000ffff
ap_gdt_pointer:
	.short . - ap_gdt - 1
	.long ap_gdt - ap_code + AP_PAGE
ap_code_end:
