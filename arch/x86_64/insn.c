/*
 * insn.c - lengths of instructions, and how each is run when a breakpoint stands in its place (SDM
 * vol. 2, 2.1 and appendix A). 64-bit mode.
 * Pure but for the trap frame and the stack that it points to. Locking: none.
 */
#include "arch/insn.h"

#include "arch/irq.h"
#include "arch/mmu.h"
#include "arch/trap.h"
#include "arch/uaccess.h"
#include "arch/x86_64/insn.h"

/*
 * What follows an opcode: . nothing; m ModRM; b, z, j, J, w, e, o, v an immediate (8 bits; 16 or
 * 32; a distance of 8, of 32 bits; 16 bits; 16 and 8; an address; 32, or 64 with REX.W); B, Z ModRM
 * and an immediate of 8, of 16 or 32 bits; F, G the same, but the immediate only if the ModRM's reg
 * is 0 or 1; x no instruction.
 */
static const char one_byte[] = "mmmmbzxxmmmmbzxx"  /* 00 */
			       "mmmmbzxxmmmmbzxx"  /* 10 */
			       "mmmmbzxxmmmmbzxx"  /* 20; prefixes are not looked up */
			       "mmmmbzxxmmmmbzxx"  /* 30 */
			       "xxxxxxxxxxxxxxxx"  /* 40: REX */
			       "................"  /* 50 */
			       "xxxmxxxxzZbB...."  /* 60 */
			       "jjjjjjjjjjjjjjjj"  /* 70 */
			       "BZxBmmmmmmmmmmmm"  /* 80 */
			       "..........x....."  /* 90 */
			       "oooo....bz......"  /* a0 */
			       "bbbbbbbbvvvvvvvv"  /* b0 */
			       "BBw.xxBZe.w..bx."  /* c0 */
			       "mmmmxxx.mmmmmmmm"  /* d0 */
			       "jjjjbbbbJJxj...."  /* e0 */
			       "x.xx..FG......mm"; /* f0 */
static const char two_byte[] = "mmmmx.....x.xmxx"  /* 0f 00 */
			       "mmmmmmmmmmmmmmmm"  /* 10 */
			       "mmmmxxxxmmmmmmmm"  /* 20 */
			       "......x.xxxxxxxx"  /* 30 */
			       "mmmmmmmmmmmmmmmm"  /* 40 */
			       "mmmmmmmmmmmmmmmm"  /* 50 */
			       "mmmmmmmmmmmmmmmm"  /* 60 */
			       "BBBBmmm.mmxxmmmm"  /* 70 */
			       "JJJJJJJJJJJJJJJJ"  /* 80 */
			       "mmmmmmmmmmmmmmmm"  /* 90 */
			       "...mBmxx...mBmmm"  /* a0 */
			       "mmmmmmmmmmBmmmmm"  /* b0 */
			       "mmBmBBBm........"  /* c0 */
			       "mmmmmmmmmmmmmmmm"  /* d0 */
			       "mmmmmmmmmmmmmmmm"  /* e0 */
			       "mmmmmmmmmmmmmmmm"; /* f0 */

static bool
is_prefix(uint8_t b)
{
	return b == 0x26 || b == 0x2e || b == 0x36 || b == 0x3e || (b >= 0x64 && b <= 0x67) ||
	       b == 0xf0 || b == 0xf2 || b == 0xf3;
}

/* Bytes of a ModRM at p with its SIB and displacement; *rip: the displacement is from RIP. */
static unsigned
modrm_size(const uint8_t *p, bool *rip)
{
	unsigned mod = p[0] >> 6, rm = p[0] & 7, n = 1;

	*rip = mod == 0 && rm == 5;
	if (mod == 3)
		return 1;
	if (rm == 4) {
		n++;
		if (mod == 0 && (p[1] & 7) == 5)
			return n + 4;
	}
	return n + (mod == 1 ? 1 : mod == 2 || *rip ? 4 : 0);
}

/*
 * Prefixes VEX and EVEX have the map of the opcode in them. Returns their length, 0 if there is
 * none; *map: 1, 2 (0f 38) or 3 (0f 3a); 0: not known.
 */
static unsigned
vex_size(const uint8_t *p, unsigned *map)
{
	if (p[0] != 0xc4 && p[0] != 0xc5 && p[0] != 0x62)
		return 0;
	*map = p[0] == 0xc5 ? 1 : p[1] & (p[0] == 0xc4 ? 31 : 7);
	*map = *map <= 3 ? *map : 0;
	return p[0] == 0xc5 ? 2 : p[0] == 0xc4 ? 3 : 4;
}

bool
x86_insn_decode(const uint8_t *code, struct x86_insn *in)
{
	bool data16 = false, address32 = false;
	unsigned n = 0, imm = 0, vex, map = 0;
	char form;

	*in = (struct x86_insn){.rex = 0};
	for (; n < ARCH_INSN_MAX - 1 && is_prefix(code[n]); n++) {
		data16 |= code[n] == 0x66;
		address32 |= code[n] == 0x67;
		in->segment |= code[n] == 0x64 || code[n] == 0x65;
	}
	in->address32 = address32;
	if ((code[n] & 0xf0) == 0x40)
		in->rex = code[n++];
	vex = n < ARCH_INSN_MAX - 4 ? vex_size(code + n, &map) : 0;
	n += vex;
	in->opcode = code[n++];
	form = one_byte[in->opcode];
	if (vex != 0) {
		if (map == 0)
			return false;
		in->map = map == 1 ? 1 : map == 2 ? 0x38 : 0x3a;
		form = map == 1 ? two_byte[in->opcode] : map == 2 ? 'm' : 'B';
	} else if (in->opcode == 0x0f) {
		in->map = 1;
		in->opcode = code[n++];
		form = two_byte[in->opcode];
		if (in->opcode == 0x38 || in->opcode == 0x3a) {
			form = in->opcode == 0x38 ? 'm' : 'B';
			in->map = in->opcode;
			in->opcode = code[n++];
		}
	}
	if (form == 'x' || n > ARCH_INSN_MAX - 1)
		return false;
	if (form == 'm' || form == 'B' || form == 'Z' || form == 'F' || form == 'G') {
		in->modrm = (uint8_t)n;
		if ((form == 'F' || form == 'G') && (code[n] >> 3 & 7) > 1)
			form = 'm';
		n += modrm_size(code + n, &in->rip);
		in->disp = (uint8_t)(n - 4); /* of an operand with RIP */
	}
	switch (form) {
	case 'b':
	case 'B':
	case 'F':
	case 'j':
		imm = 1;
		break;
	case 'z':
	case 'Z':
	case 'G':
		imm = data16 && (in->rex & 8) == 0 ? 2 : 4;
		break;
	case 'v':
		imm = in->rex & 8 ? 8 : data16 ? 2 : 4;
		break;
	case 'J':
		imm = 4;
		break;
	case 'w':
		imm = 2;
		break;
	case 'e':
		imm = 3;
		break;
	case 'o':
		imm = address32 ? 4 : 8;
		break;
	}
	in->imm = (uint8_t)n;
	in->length = (uint8_t)(n + imm);
	return in->length <= ARCH_INSN_MAX;
}

enum x86_insn_kind
x86_insn_kind(const uint8_t *code, const struct x86_insn *in)
{
	unsigned op = in->opcode, reg = in->modrm != 0 ? code[in->modrm] >> 3 & 7 : 0;

	if (in->map == 1) {
		if ((op & 0xf0) == 0x80)
			return X86_JCC;
		/* system calls and their returns, UD2, RSM, SYSENTER, XSETBV's group, SWAPGS,
		 * MONITOR */
		if (op == 0x05 || op == 0x07 || op == 0x0b || op == 0xaa || op == 0x34 ||
		    op == 0x35 || op == 0xb9 || op == 0xff || op == 0x01)
			return X86_REFUSED;
		return X86_COPY;
	}
	if (in->map != 0)
		return X86_COPY;
	if ((op & 0xf0) == 0x70)
		return X86_JCC;
	switch (op) {
	case 0xe8:
		return X86_CALL;
	case 0xe9:
	case 0xeb:
		return X86_JUMP;
	case 0xc2:
	case 0xc3:
		return X86_RET;
	case 0xff:
		if (reg == 2 || reg == 4)
			return in->segment || in->address32 ? X86_REFUSED : X86_INDIRECT;
		return reg == 3 || reg == 5 ? X86_REFUSED : X86_COPY;
	case 0x9c: /* PUSHF, POPF, CLI, STI, HLT: interrupts are off in a slot */
	case 0x9d:
	case 0xfa:
	case 0xfb:
	case 0xf4:
	case 0x8e: /* MOV to a segment register */
	case 0xca: /* far returns, INT3, INT, INTO, IRET, INT1 */
	case 0xcb:
	case 0xcc:
	case 0xcd:
	case 0xcf:
	case 0xf1:
	case 0xe0: /* LOOP, JRCXZ */
	case 0xe1:
	case 0xe2:
	case 0xe3:
	case 0xc7: /* XBEGIN */
		return op == 0xc7 && reg == 0 ? X86_COPY : X86_REFUSED;
	case 0xc6:
		return reg == 0 ? X86_COPY : X86_REFUSED; /* XABORT */
	}
	return X86_COPY;
}

size_t
arch_insn_length(const uint8_t code[ARCH_INSN_MAX])
{
	struct x86_insn in;

	return x86_insn_decode(code, &in) ? in.length : 0;
}

const uint8_t arch_break_insn[ARCH_BREAK_SIZE] = {0xcc};

const char *
arch_insn_refuse(const uint8_t *function, size_t offset)
{
	struct x86_insn in;

	if (!x86_insn_decode(function + offset, &in))
		return "an unknown instruction is there";
	return x86_insn_kind(function + offset, &in) == X86_REFUSED
		   ? "the instruction there changes how interrupts or traps are taken"
		   : NULL;
}

/* A little-endian number of n bytes with a sign. */
static int64_t
insn_number(const uint8_t *p, unsigned n)
{
	uint32_t v = 0;

	for (unsigned i = 0; i < n; i++)
		v |= (uint32_t)p[i] << 8 * i;
	return n == 1 ? (int8_t)v : n == 2 ? (int16_t)v : (int32_t)v;
}

static void
insn_put32(uint8_t *p, uint64_t v)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

size_t
arch_insn_slot(const uint8_t code[ARCH_INSN_MAX], uintptr_t at, uintptr_t slot, bool irq_on,
	       uint8_t out[ARCH_SLOT_SIZE / 2])
{
	struct x86_insn in;
	size_t n;

	if (!x86_insn_decode(code, &in) || x86_insn_kind(code, &in) != X86_COPY)
		return 0;
	for (n = 0; n < in.length; n++)
		out[n] = code[n];
	if (in.rip) /* the same address, seen from the slot */
		insn_put32(out + in.disp, (uint64_t)insn_number(code + in.disp, 4) + at - slot);
	if (irq_on)
		out[n++] = 0xfb;
	out[n] = 0xe9;
	insn_put32(out + n + 1, at + in.length - (slot + n + 5));
	return n + 5;
}

void
arch_insn_run(uintptr_t slot, struct arch_trapframe *tf)
{
	bool on = arch_tf_irq_on(tf);

	tf->rip = on ? slot : slot + ARCH_SLOT_SIZE / 2;
	tf->rflags &= ~X86_RFLAGS_IF;
}

/* A general register by its number in an instruction. */
static uint64_t *
insn_reg(struct arch_trapframe *tf, unsigned n)
{
	uint64_t *const regs[] = {&tf->rax, &tf->rcx, &tf->rdx, &tf->rbx, &tf->rsp, &tf->rbp,
				  &tf->rsi, &tf->rdi, &tf->r8,  &tf->r9,  &tf->r10, &tf->r11,
				  &tf->r12, &tf->r13, &tf->r14, &tf->r15};

	return regs[n & 15];
}

/* Accesses 8 bytes of the interrupted context's memory. False if that is a program's, and the
 * program may not access them. */
static bool
insn_load(const struct arch_trapframe *tf, uint64_t *to, uintptr_t from)
{
	if (arch_tf_user(tf))
		return from <= ARCH_USER_END - 8 && arch_copy_user(to, (const void *)from, 8);
	*to = *(const uint64_t *)from;
	return true;
}

static bool
insn_store(const struct arch_trapframe *tf, uintptr_t to, uint64_t v)
{
	if (arch_tf_user(tf))
		return to <= ARCH_USER_END - 8 && arch_copy_user((void *)to, &v, 8);
	*(uint64_t *)to = v;
	return true;
}

/* Where the 64-bit operand of a ModRM is in memory, which is no register's. */
static uintptr_t
modrm_at(const uint8_t *code, const struct x86_insn *in, uintptr_t next, struct arch_trapframe *tf)
{
	const uint8_t *p = code + in->modrm;
	unsigned mod = p[0] >> 6, rm = p[0] & 7, base = in->rex & 1 ? 8 : 0;
	unsigned size = mod == 1 ? 1 : 4;
	uint64_t at = 0;

	if (in->rip)
		return next + (uint64_t)insn_number(p + 1, 4);
	if (rm == 4) {
		unsigned index = (p[1] >> 3 & 7) + (in->rex & 2 ? 8 : 0);

		if (index != 4)
			at += *insn_reg(tf, index) << (p[1] >> 6);
		rm = p[1] & 7;
		p++;
		if (mod == 0 && rm == 5)
			return at + (uint64_t)insn_number(p + 1, 4);
	}
	at += *insn_reg(tf, rm + base);
	if (mod != 0)
		at += (uint64_t)insn_number(p + 1, size);
	return at;
}

/* Does a condition hold? (SDM vol. 1, appendix B) */
static bool
insn_condition_holds(unsigned cc, uint64_t flags)
{
	bool cf = flags & 1, pf = flags >> 2 & 1, zf = flags >> 6 & 1, sf = flags >> 7 & 1,
	     of = flags >> 11 & 1;
	bool is[] = {of, cf, zf, cf || zf, sf, pf, sf != of, zf || sf != of};

	return is[cc >> 1 & 7] != (cc & 1);
}

unsigned
arch_insn_emulate(const uint8_t code[ARCH_INSN_MAX], uintptr_t at, struct arch_trapframe *tf,
		  uintptr_t *va)
{
	enum x86_insn_kind kind;
	struct x86_insn in;
	uintptr_t next, target;
	uint64_t sp = tf->rsp;

	x86_insn_decode(code, &in);
	kind = x86_insn_kind(code, &in);
	next = at + in.length;
	target = next + (uintptr_t)insn_number(code + in.imm, in.length - in.imm);
	if (kind == X86_JCC && !insn_condition_holds(in.opcode, tf->rflags))
		target = next;
	if (kind == X86_INDIRECT && code[in.modrm] >> 6 == 3)
		target = *insn_reg(tf, (code[in.modrm] & 7) + (in.rex & 1 ? 8 : 0));
	else if (kind == X86_INDIRECT &&
		 !insn_load(tf, &target, *va = modrm_at(code, &in, next, tf)))
		return MMU_READ;
	if (kind == X86_RET) {
		if (!insn_load(tf, &target, *va = sp))
			return MMU_READ;
		sp += 8 + (uint16_t)insn_number(code + in.imm, in.length - in.imm);
	}
	if (arch_tf_user(tf) && (*va = target) >= ARCH_USER_END)
		return MMU_EXEC; /* IRET would fault in the kernel */
	if (kind == X86_CALL || (kind == X86_INDIRECT && (code[in.modrm] >> 3 & 7) == 2)) {
		/* The CPU's frame stands below the interrupted stack of the kernel: this overwrites
		 * its SS, which breakpoint_return does not use. */
		if (!insn_store(tf, sp - 8, next)) {
			*va = sp - 8;
			return MMU_WRITE;
		}
		sp -= 8;
	}
	tf->rsp = sp;
	tf->rip = target;
	return 0;
}

int
arch_insn_user_slot(const uint8_t code[ARCH_INSN_MAX], uintptr_t at, uintptr_t slot,
		    uint8_t out[ARCH_USER_SLOT])
{
	enum x86_insn_kind kind;
	struct x86_insn in;
	int64_t far;

	x86_insn_decode(code, &in);
	kind = x86_insn_kind(code, &in);
	/* A return or a jump that leaves the slot needs no help. */
	if (kind != X86_COPY && kind != X86_RET &&
	    !(kind == X86_INDIRECT && (code[in.modrm] >> 3 & 7) == 4))
		return 0;
	for (unsigned n = 0; n < ARCH_USER_SLOT; n++)
		out[n] = n < in.length ? code[n] : n == in.length ? 0xcc : 0;
	if (in.rip) {
		far = insn_number(code + in.disp, 4) + (int64_t)(at - slot);
		if (far != (int32_t)far)
			return -1;
		insn_put32(out + in.disp, (uint64_t)far);
	}
	return in.length;
}
