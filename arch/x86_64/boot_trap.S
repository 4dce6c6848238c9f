/*
 * boot_trap.S - what ends the boot before there is a console: exceptions before x86_cpu_init() has loaded
 * the kernel's interrupt table, and what boot.S refuses. It is printed on COM1, and ends the machine as a
 * panic does.
 *
 * There are two tables, since 32-bit mode and long mode have different gates (SDM vol. 3A, 6.11 and
 * 6.14.1). The boot CPU uses the first until paging turns long mode on; a secondary CPU uses the second
 * only. All of this is linked at its physical address.
 */
#include "arch/x86_64/asm.h"

#define COM1	      0x3f8
#define COM1_STATUS   0x3fd
#define STATUS_EMPTY  0x20
#define DEBUG_EXIT    0xf4		/* QEMU's isa-debug-exit: machine.c */
#define PANIC_STATUS  101
#define GATE_PRESENT  0x8e00		/* an interrupt gate, for the kernel only */

	/* For each exception 16 bytes of code, which push the vector and, if the CPU did not, an error code. */
	.macro BOOT_VECTORS bits
	.code\bits
	.balign 16
boot_vectors\bits:
	.set vec, 0
	.rept 32
	.balign 16
	.if (vec != 8) && ((vec < 10) || (vec > 14)) && (vec != 17) && (vec != 21) && (vec != 29) && (vec != 30)
	push $0
	.endif
	push $vec
	jmp boot_trap\bits
	.set vec, vec + 1
	.endr
	.endm

	/* r is the prefix of a register of a word's width. */
	.macro BOOT_TRAP bits, r, word
	.code\bits
boot_trap\bits:
	mov $boot_texts, %esi
	xor %ebp, %ebp
1:	call boot_puts\bits
	mov (%\r\()sp, %\r\()bp, \word), %\r\()bx	/* vector, error code, instruction pointer */
	call boot_hex\bits
	inc %ebp
	cmp $3, %ebp
	jb 1b
	call boot_puts\bits
	mov %cr2, %\r\()bx
	call boot_hex\bits
boot_end\bits:
	call boot_puts\bits
	mov $(PANIC_STATUS + 1), %eax
	out %eax, $DEBUG_EXIT
2:	hlt
	jmp 2b

	/* Prints the text at rsi, and leaves rsi at the next text. Uses rax and rdx. */
boot_puts\bits:
	lodsb
	test %al, %al
	jz 1f
	call boot_putc\bits
	jmp boot_puts\bits
1:	ret

	/* Prints the digits of rbx. Uses rax, rcx and rdx. */
boot_hex\bits:
	mov $(2 * \word), %ecx
1:	rol $4, %\r\()bx
	mov %bl, %al
	and $15, %al
	cmp $10, %al
	jb 2f
	add $('a' - '0' - 10), %al
2:	add $'0', %al
	call boot_putc\bits
	loop 1b
	ret

boot_putc\bits:
	mov %al, %ah
	mov $COM1_STATUS, %edx
1:	in %dx, %al
	test $STATUS_EMPTY, %al
	jz 1b
	mov %ah, %al
	mov $COM1, %edx
	out %al, %dx
	ret
	.endm

	.section .boot.text, "ax"
	BOOT_VECTORS 32
	BOOT_VECTORS 64
	BOOT_TRAP 32, e, 4
	BOOT_TRAP 64, r, 8

	/* Prints the text at esi, and ends the machine. In 32-bit mode, with a stack. */
	.globl boot_refuse
	.set boot_refuse, boot_end32

boot_texts:
	.asciz "\r\nboot: exception 0x"
	.asciz ", error 0x"
	.asciz ", at 0x"
	.asciz ", address 0x"
	.asciz "\r\n"

	/* Makes both tables and loads the first. Needs boot_gdt. Uses eax, ebx, ecx and edx. */
	.code32
	.globl boot_traps_init
boot_traps_init:
	xor %ecx, %ecx
1:	mov %ecx, %eax
	shl $4, %eax
	lea boot_vectors64(%eax), %edx
	mov $SEL_BOOT_CODE64, %ebx
	call 2f				/* a gate of 16 bytes, whose upper half is 0 */
	mov %ecx, %eax
	shl $3, %eax
	lea boot_vectors32(%eax,%eax), %edx
	add $(boot_idt32 - boot_idt64), %eax
	mov $SEL_BOOT_CODE32, %ebx
	call 2f
	inc %ecx
	cmp $32, %ecx
	jb 1b
	lidt boot_idt32_pointer
	ret

	/* The gate at boot_idt64 + eax leads to edx in segment ebx. */
2:	mov %dx, boot_idt64(%eax)
	mov %bx, boot_idt64 + 2(%eax)
	movw $GATE_PRESENT, boot_idt64 + 4(%eax)
	shr $16, %edx
	mov %dx, boot_idt64 + 6(%eax)
	ret

	.section .boot.data, "aw"
	.balign 8
	.globl boot_idt64_pointer
boot_idt32_pointer:
	.short 32 * 8 - 1
	.long boot_idt32, 0
boot_idt64_pointer:
	.short 32 * 16 - 1
	.long boot_idt64, 0

	.balign 16
boot_idt64:	.fill 32 * 16, 1, 0
boot_idt32:	.fill 32 * 8, 1, 0
