/* text.c - what a record says, in FreeBSD's words and columns. */
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "userland/bin/kdump/kdump.h"

#define SCREEN 80

static void
print_syscall(const struct kdump_machine *m, const struct ktr_syscall *s)
{
	const struct kdump_call *call = kdump_call(m, s->ktr_code);

	if (call != NULL)
		fputs(call->name, stdout);
	if (call == NULL || kdump_options.numbers)
		printf("[%u]", s->ktr_code);
	putchar('(');
	for (unsigned i = 0; i < s->ktr_narg; i++) {
		bool known = call != NULL && i < KDUMP_ARGS && call->args[i].name != NULL;

		if (i > 0)
			putchar(',');
		kdump_print_arg(m, known ? call->args[i].kind : ARG_NUMBER, s->ktr_args[i]);
	}
	puts(")");
}

static void
print_sysret(const struct kdump_machine *m, const struct ktr_sysret *s)
{
	const struct kdump_call *call = kdump_call(m, s->ktr_code);
	int64_t v = s->ktr_retval;

	if (call != NULL)
		fputs(call->name, stdout);
	if (call == NULL || kdump_options.numbers)
		printf("[%u]", s->ktr_code);
	putchar(' ');
	if (s->ktr_error != 0) {
		printf("-1 errno %d", s->ktr_error);
		if (!kdump_options.raw)
			printf(" %s", strerror(s->ktr_error));
	} else if (kdump_options.raw) {
		kdump_print_number((uint64_t)v);
	} else {
		printf("%ld", v);
		if (v < 0 || v > 9)
			printf("/%#lx", v);
	}
	putchar('\n');
}

/* Writes a byte as one character, or as an escape of C, and returns its length. next: the byte
 * that follows, or 0. */
static unsigned
escape(char out[5], uint8_t c, uint8_t next)
{
	static const char letters[] = "\a\b\n\r\t\v\f", names[] = "abnrtvf";
	const char *at = c != 0 ? strchr(letters, c) : NULL;

	if (c >= 0x20 && c < 0x7f && c != '\\')
		return (unsigned)snprintf(out, 5, "%c", c);
	if (c == '\\')
		return (unsigned)snprintf(out, 5, "\\\\");
	if (at != NULL)
		return (unsigned)snprintf(out, 5, "\\%c", names[at - letters]);
	if (c == 0 && (next < '0' || next > '7'))
		return (unsigned)snprintf(out, 5, "\\0");
	return (unsigned)snprintf(out, 5, "\\%03o", c);
}

void
kdump_print_bytes(const uint8_t *p, size_t n)
{
	char text[5];

	for (size_t i = 0; i < n; i++) {
		escape(text, p[i], i + 1 < n ? p[i + 1] : 0);
		fputs(text, stdout);
	}
}

/* Prints text, whose lines and tabs stay, and folds lines that are too long. */
static void
print_text(const uint8_t *p, size_t n)
{
	unsigned col = 8;

	printf("       \"");
	for (size_t i = 0; i < n; i++) {
		char text[5] = "\t";
		unsigned width = 8 - col % 8;

		if (col == 0) {
			putchar('\t');
			col = 8;
		}
		if (p[i] == '\n') {
			putchar('\n');
			col = 0;
			continue;
		}
		if (p[i] != '\t')
			width = escape(text, p[i], i + 1 < n ? p[i + 1] : 0);
		if (col + width > SCREEN - 2) {
			printf("\\\n\t");
			col = 8;
		}
		fputs(text, stdout);
		col += width;
	}
	printf("%s\"\n", col == 0 ? "       " : "");
}

static void
print_hex(const uint8_t *p, size_t n)
{
	for (size_t at = 0; at < n; at += 16) {
		size_t row = n - at < 16 ? n - at : 16;

		printf("       0x%04zx", at);
		for (size_t i = 0; i < 16; i++) {
			if (i % 2 == 0)
				putchar(' ');
			if (i < row)
				printf("%02x", p[at + i]);
			else
				printf("  ");
		}
		printf("  |");
		for (size_t i = 0; i < row; i++)
			putchar(p[at + i] >= 0x20 && p[at + i] < 0x7f ? p[at + i] : '.');
		puts("|");
	}
}

/* As FreeBSD's kdump decides it. */
static bool
is_text(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((p[i] < 0x20 || p[i] >= 0x7f) && p[i] != '\n' && p[i] != '\r' && p[i] != '\t' &&
		    p[i] != '\0')
			return false;
	return true;
}

static void
print_data(const uint8_t *p, size_t n)
{
	if (kdump_options.no_data)
		return;
	if (n > kdump_options.max_data)
		n = (size_t)kdump_options.max_data;
	if (is_text(p, n))
		print_text(p, n);
	else
		print_hex(p, n);
}

static void
print_genio(const struct ktr_genio *g, size_t n)
{
	printf("fd %d %s %lu byte%s", g->ktr_fd, g->ktr_rw == KTR_READ ? "read" : "wrote",
	       g->ktr_bytes, g->ktr_bytes == 1 ? "" : "s");
	if (n < g->ktr_bytes)
		printf(", %zu recorded", n);
	putchar('\n');
	print_data((const uint8_t *)(g + 1), n);
}

static void
print_psig(const struct ktr_psig *s)
{
	const char *name = kdump_signal(s->ktr_signo);

	if (name != NULL)
		printf("%s ", name);
	else
		printf("SIG %d ", s->ktr_signo);
	if (s->ktr_action == 0)
		printf("SIG_DFL");
	else
		printf("caught handler=%#lx mask=%#lx", s->ktr_action, s->ktr_mask);
	name = kdump_signal_code(s->ktr_signo, s->ktr_code);
	if (name != NULL)
		printf(" code=%s\n", name);
	else
		printf(" code=%#x\n", s->ktr_code);
}

/* As ls -l prints it. */
static void
print_mode(uint64_t mode)
{
	static const char kinds[] = "?pc?d?b?-?l?s???", bits[] = "rwxrwxrwx";

	putchar(kinds[mode >> 12 & 15]);
	for (unsigned i = 0; i < 9; i++) {
		bool set = mode >> (8 - i) & 1;

		if (i % 3 == 2 && mode >> (11 - i / 3) & 1) /* S_ISUID, S_ISGID, S_ISVTX */
			putchar((set ? "sst" : "SST")[i / 3]);
		else
			putchar(set ? bits[i] : '-');
	}
}

static void
print_date(const char *name, int64_t sec, int64_t nsec)
{
	struct tm t;

	if (kdump_options.symbolic && gmtime_r(&sec, &t) != NULL)
		printf(", %s=\"%ld-%02d-%02d %02d:%02d:%02d\"", name, t.tm_year + 1900l,
		       t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec);
	else
		printf(", %s=%ld", name, sec);
	if (nsec != 0)
		printf(".%09ld", nsec);
}

static void
print_owner(const struct kdump_stat *st)
{
	const struct passwd *user = kdump_options.symbolic ? getpwuid((uid_t)st->uid) : NULL;
	const struct group *group = kdump_options.symbolic ? getgrgid((gid_t)st->gid) : NULL;

	if (user != NULL)
		printf(", uid=\"%s\"", user->pw_name);
	else
		printf(", uid=%lu", st->uid);
	if (group != NULL)
		printf(", gid=\"%s\"", group->gr_name);
	else
		printf(", gid=%lu", st->gid);
}

static void
print_stat(const struct kdump_machine *m, const uint8_t *bytes)
{
	struct kdump_stat st;

	m->stat(bytes, &st);
	printf("struct stat {dev=%lu, ino=%lu, mode=", st.dev, st.ino);
	if (kdump_options.symbolic)
		print_mode(st.mode);
	else
		printf("0%lo", st.mode);
	printf(", nlink=%lu", st.nlink);
	print_owner(&st);
	printf(", rdev=%lu", st.rdev);
	print_date("atime", st.atime, st.atime_nsec);
	print_date("mtime", st.mtime, st.mtime_nsec);
	print_date("ctime", st.ctime, st.ctime_nsec);
	printf(", size=%ld, blksize=%lu, blocks=%lu}\n", st.size, st.blksize, st.blocks);
}

static void
print_struct(const struct kdump_machine *m, const struct ktr_header *h, const uint8_t *data)
{
	const char *name = (const char *)data;
	size_t size;
	const uint8_t *bytes = kdump_struct(h, data, &size);
	uint64_t v[2];

	if (strcmp(name, "stat") == 0 && m != NULL && size == m->stat_size) {
		print_stat(m, bytes);
		return;
	}
	printf("struct ");
	kdump_print_bytes(data, strlen(name));
	if (size == sizeof(v)) {
		memcpy(v, bytes, sizeof(v));
		if (strcmp(name, "timespec") == 0) {
			printf(" {sec=%ld, nsec=%ld}\n", v[0], v[1]);
			return;
		}
		if (strcmp(name, "rlimit") == 0) {
			printf(" {cur=%ld, max=%ld}\n", v[0], v[1]);
			return;
		}
	}
	putchar('\n');
	print_hex(bytes, size);
}

static void
print_fault(const struct ktr_fault *f)
{
	printf("0x%lx %s\n", f->ktr_vaddr,
	       f->ktr_access & KTR_ACCESS_EXEC    ? "VM_PROT_EXECUTE"
	       : f->ktr_access & KTR_ACCESS_WRITE ? "VM_PROT_WRITE"
						  : "VM_PROT_READ");
}

static void
print_csw(const struct ktr_csw *c)
{
	printf("%s %s \"", c->ktr_out ? "stop" : "resume", c->ktr_user ? "user" : "kernel");
	kdump_print_bytes((const uint8_t *)c->ktr_wmesg, strnlen(c->ktr_wmesg, KTR_WMESG_SIZE));
	puts("\"");
}

void
kdump_text(const struct ktr_header *h, const uint8_t *data)
{
	const struct kdump_machine *m = kdump_machine(h->ktr_machine);
	const void *p = data;

	switch (h->ktr_type & KTR_TYPE) {
	case KTR_SYSCALL:
		print_syscall(m, p);
		break;
	case KTR_SYSRET:
		print_sysret(m, p);
		break;
	case KTR_NAMEI:
	case KTR_SYSCTL:
		putchar('"');
		kdump_print_bytes(data, h->ktr_len);
		puts("\"");
		break;
	case KTR_GENIO:
		print_genio(p, h->ktr_len - sizeof(struct ktr_genio));
		break;
	case KTR_PSIG:
		print_psig(p);
		break;
	case KTR_CSW:
		print_csw(p);
		break;
	case KTR_USER:
		printf("%u byte%s\n", h->ktr_len, h->ktr_len == 1 ? "" : "s");
		print_data(data, h->ktr_len);
		break;
	case KTR_STRUCT:
		print_struct(m, h, data);
		break;
	case KTR_FAULT:
		print_fault(p);
		break;
	case KTR_FAULTEND:
		puts(((const struct ktr_faultend *)p)->ktr_served ? "KERN_SUCCESS"
								  : "KERN_PROTECTION_FAILURE");
		break;
	default:
		printf("%u bytes\n", h->ktr_len);
		print_hex(data, h->ktr_len);
	}
}
