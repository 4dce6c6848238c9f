/*
 * admin_syscalls.c - system calls of those who look after the machine: its name, its messages, its
 * end. Locking: syslog_lock, for what was read and cleared of the messages.
 */
#include "arch/irq.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/reboot.h"
#include "kernel/abi/syslog.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/shutdown.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/mutex.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"
#include "kernel/sync/stop.h"
#include "kernel/syscall.h"
#include "kernel/sysctl/uts.h"

static _Noreturn void
kernel_halt(void)
{
	printk("system halted\n");
	shutdown_before_halt();
	irq_push();
	stop_claim(NULL);
	stop_others();
	for (;;)
		arch_relax();
}

int64_t
sys_reboot(const uint64_t a[6])
{
	if (!capable(CAP_SYS_BOOT))
		return -EPERM;
	if ((uint32_t)a[0] != REBOOT_MAGIC1 ||
	    ((uint32_t)a[1] != REBOOT_MAGIC2 && (uint32_t)a[1] != REBOOT_MAGIC2A &&
	     (uint32_t)a[1] != REBOOT_MAGIC2B && (uint32_t)a[1] != REBOOT_MAGIC2C))
		return -EINVAL;
	switch ((uint32_t)a[2]) {
	case REBOOT_CAD_ON:
	case REBOOT_CAD_OFF:
		return 0; /* there is no keyboard with such keys */
	case REBOOT_RESTART:
	case REBOOT_RESTART2:
		shutdown_reboot();
	case REBOOT_HALT:
		kernel_halt();
	case REBOOT_POWER_OFF:
		shutdown_poweroff(0);
	default:
		return -EINVAL;
	}
}

/* A name of at most 64 characters from the user. */
static int
take_name(const uint64_t a[6], int (*set)(const char *name))
{
	char name[UTSNAME_SIZE] = "";

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if ((int32_t)a[1] < 0 || a[1] >= sizeof(name))
		return -EINVAL;
	return copy_in(name, a[0], a[1]) != 0 ? -EFAULT : set(name);
}

SYSCALL_IS(sethostname, take_name(a, uts_set_hostname))
SYSCALL_IS(setdomainname, take_name(a, uts_set_domainname))

static struct mutex syslog_lock = MUTEX_INIT("syslog");
static uint64_t cleared; /* syslog_lock: older messages are not shown */
static uint64_t taken;   /* syslog_lock: up to here SYSLOG_READ has read */

/* Copies messages from *at on to the user. Bytes or -EFAULT. syslog_lock held. */
static int64_t
give_messages(uint64_t *at, uint64_t ubuf, uint64_t room)
{
	uint64_t done = 0;
	char piece[256];

	while (done < room) {
		size_t n = msgbuf_read(at, piece,
				       room - done < sizeof(piece) ? room - done : sizeof(piece));

		if (n == 0)
			break;
		if (copy_out(ubuf + done, piece, n) != 0)
			return -EFAULT;
		done += n;
	}
	return (int64_t)done;
}

/* The newest messages that fit. */
static int64_t
read_all(uint64_t ubuf, uint64_t room, bool clear)
{
	uint64_t at, end;
	int64_t n;

	mutex_lock(&syslog_lock);
	end = msgbuf_end();
	at = end > room ? msgbuf_line_after(end - room) : 0;
	if (at < cleared)
		at = cleared;
	n = give_messages(&at, ubuf, room);
	if (clear && n >= 0)
		cleared = end;
	mutex_unlock(&syslog_lock);
	return n;
}

/* Takes messages, each of them once. Waits for the first one, and looks again now and then:
 * nobody wakes it, since messages are printed in any context. */
static int64_t
read_new(uint64_t ubuf, uint64_t room)
{
	int64_t n;

	for (;;) {
		mutex_lock(&syslog_lock);
		n = give_messages(&taken, ubuf, room);
		mutex_unlock(&syslog_lock);
		if (n != 0 || room == 0)
			return n;
		if (thread_sleep_ns(50000000, SLEEP_INTR, "syslog") != 0)
			return -EINTR;
	}
}

int64_t
sys_syslog(const uint64_t a[6])
{
	static bool was_quiet;
	uint32_t type = (uint32_t)a[0];
	int32_t len = (int32_t)a[2];
	uint64_t end, at;

	if (type != SYSLOG_READ_ALL && type != SYSLOG_SIZE_BUFFER && !capable(CAP_SYSLOG))
		return -EPERM;
	switch (type) {
	case SYSLOG_CLOSE:
	case SYSLOG_OPEN:
		return 0;
	case SYSLOG_READ:
	case SYSLOG_READ_ALL:
	case SYSLOG_READ_CLEAR:
		if (a[1] == 0 || len < 0)
			return -EINVAL;
		return type == SYSLOG_READ
			   ? read_new(a[1], (uint32_t)len)
			   : read_all(a[1], (uint32_t)len, type == SYSLOG_READ_CLEAR);
	case SYSLOG_CLEAR:
		mutex_lock(&syslog_lock);
		cleared = msgbuf_end();
		mutex_unlock(&syslog_lock);
		return 0;
	case SYSLOG_CONSOLE_OFF:
		was_quiet = printk_set_quiet(true);
		return 0;
	case SYSLOG_CONSOLE_ON:
		printk_set_quiet(was_quiet);
		return 0;
	case SYSLOG_CONSOLE_LEVEL:
		if (len < 1 || len > 8)
			return -EINVAL;
		printk_set_quiet(len <= SYSLOG_INFO); /* warnings are always shown */
		return 0;
	case SYSLOG_SIZE_UNREAD:
		mutex_lock(&syslog_lock);
		at = taken;
		mutex_unlock(&syslog_lock);
		end = msgbuf_end();
		return (int64_t)(end - at < msgbuf_size() ? end - at : msgbuf_size());
	case SYSLOG_SIZE_BUFFER:
		return (int64_t)msgbuf_size();
	default:
		return -EINVAL;
	}
}
