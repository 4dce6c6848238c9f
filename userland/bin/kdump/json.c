/*
 * json.c - a record as an object on one line: {"pid":…,"tid":…,"comm":…,"cpu":…,"time":…,"type":…}
 * and what the type has. Bytes of I/O and structs are hexadecimal; texts are Latin-1.
 */
#include <stdio.h>
#include <string.h>

#include "userland/bin/kdump/kdump.h"

static void
print_string(const char *name, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	printf(",\"%s\":\"", name);
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '"' || p[i] == '\\')
			printf("\\%c", p[i]);
		else if (p[i] >= 0x20 && p[i] < 0x7f)
			putchar(p[i]);
		else
			printf("\\u%04x", p[i]);
	}
	putchar('"');
}

static void
print_hex(const char *name, const uint8_t *p, size_t n)
{
	printf(",\"%s\":\"", name);
	for (size_t i = 0; i < n; i++)
		printf("%02x", p[i]);
	putchar('"');
}

static void
print_call(const struct kdump_machine *m, uint32_t code)
{
	const struct kdump_call *call = kdump_call(m, code);

	printf(",\"code\":%u", code);
	if (call != NULL)
		print_string("call", call->name, strlen(call->name));
}

static void
print_syscall(const struct kdump_machine *m, const struct ktr_syscall *s)
{
	const struct kdump_call *call = kdump_call(m, s->ktr_code);

	print_call(m, s->ktr_code);
	printf(",\"args\":{");
	for (unsigned i = 0; i < s->ktr_narg; i++) {
		printf("%s", i > 0 ? "," : "");
		if (call != NULL && i < KDUMP_ARGS && call->args[i].name != NULL)
			printf("\"%s\":%lu", call->args[i].name, s->ktr_args[i]);
		else
			printf("\"arg%u\":%lu", i, s->ktr_args[i]);
	}
	putchar('}');
}

static void
print_struct(const struct kdump_machine *m, const struct ktr_header *h, const uint8_t *data)
{
	size_t size;
	const uint8_t *bytes = kdump_struct(h, data, &size);
	struct kdump_stat st;

	print_string("struct", data, strlen((const char *)data));
	print_hex("data", bytes, size);
	if (strcmp((const char *)data, "stat") != 0 || m == NULL || size != m->stat_size)
		return;
	m->stat(bytes, &st);
	printf(
	    ",\"dev\":%lu,\"ino\":%lu,\"mode\":%lu,\"nlink\":%lu,\"uid\":%lu,\"gid\":%lu,"
	    "\"rdev\":%lu,\"size\":%ld,\"blksize\":%lu,\"blocks\":%lu,\"atime\":%ld,\"mtime\":%ld,"
	    "\"ctime\":%ld",
	    st.dev, st.ino, st.mode, st.nlink, st.uid, st.gid, st.rdev, st.size, st.blksize,
	    st.blocks, st.atime, st.mtime, st.ctime);
}

static void
print_body(const struct ktr_header *h, const uint8_t *data)
{
	const struct kdump_machine *m = kdump_machine(h->ktr_machine);
	const void *p = data;
	const struct ktr_sysret *ret = p;
	const struct ktr_genio *io = p;
	const struct ktr_psig *sig = p;
	const struct ktr_csw *csw = p;
	const struct ktr_proc_ctor *ctor = p;
	const struct ktr_proc_dtor *dtor = p;
	const struct ktr_fault *fault = p;
	const struct ktr_faultend *end = p;

	switch (h->ktr_type & KTR_TYPE) {
	case KTR_SYSCALL:
		print_syscall(m, p);
		break;
	case KTR_SYSRET:
		print_call(m, ret->ktr_code);
		printf(",\"error\":%d,\"value\":%ld", ret->ktr_error, ret->ktr_retval);
		break;
	case KTR_NAMEI:
	case KTR_SYSCTL:
		print_string("name", data, h->ktr_len);
		break;
	case KTR_GENIO:
		printf(",\"fd\":%d,\"write\":%s,\"bytes\":%lu", io->ktr_fd,
		       io->ktr_rw == KTR_READ ? "false" : "true", io->ktr_bytes);
		print_hex("data", data + sizeof(*io), h->ktr_len - sizeof(*io));
		break;
	case KTR_PSIG:
		printf(",\"signal\":%d,\"code\":%d,\"action\":%lu,\"mask\":%lu", sig->ktr_signo,
		       sig->ktr_code, sig->ktr_action, sig->ktr_mask);
		break;
	case KTR_CSW:
		printf(",\"out\":%s,\"user\":%s", csw->ktr_out ? "true" : "false",
		       csw->ktr_user ? "true" : "false");
		print_string("wmesg", csw->ktr_wmesg, strnlen(csw->ktr_wmesg, KTR_WMESG_SIZE));
		break;
	case KTR_STRUCT:
		print_struct(m, h, data);
		break;
	case KTR_PROCCTOR:
		printf(",\"parent\":%u,\"facs\":%u", ctor->ktr_parent, ctor->ktr_facs);
		break;
	case KTR_PROCDTOR:
		printf(",\"exited\":%s,\"status\":%u", dtor->ktr_exited ? "true" : "false",
		       dtor->ktr_status);
		break;
	case KTR_FAULT:
		printf(",\"address\":%lu,\"access\":%u", fault->ktr_vaddr, fault->ktr_access);
		break;
	case KTR_FAULTEND:
		printf(",\"address\":%lu,\"served\":%s", end->ktr_vaddr,
		       end->ktr_served ? "true" : "false");
		break;
	default: /* KTR_USER, and types that are unknown */
		print_hex("data", data, h->ktr_len);
	}
}

void
kdump_json(const struct ktr_header *h, const uint8_t *data)
{
	unsigned type = h->ktr_type & KTR_TYPE;
	const char *name = kdump_type(type);

	printf("{\"pid\":%u,\"tid\":%u,\"cpu\":%u,\"time\":\"%ld.%09ld\"", h->ktr_pid, h->ktr_tid,
	       h->ktr_cpu, h->ktr_sec, h->ktr_nsec);
	print_string("comm", h->ktr_comm, strnlen(h->ktr_comm, KTR_COMM_SIZE));
	if (name != NULL)
		print_string("type", name, strlen(name));
	else
		printf(",\"type\":\"%u\"", type);
	if (h->ktr_type & KTR_DROP)
		printf(",\"dropped\":%u", h->ktr_dropped);
	print_body(h, data);
	puts("}");
}
