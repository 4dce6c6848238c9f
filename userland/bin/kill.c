/* kill.c - sends signals. */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tool.h>

static const char usage[] = "kill [-SIGNAL | -s SIGNAL] PID...    (a negative PID is a group)\n"
			    "       kill -l\n";

static int
list_signals(void)
{
	for (int sig = 1; sig <= NSIG; sig++) {
		if (signal_name(sig) != NULL)
			printf("%2d %s\n", sig, signal_name(sig));
	}
	return tool_finish(0);
}

int
main(int argc, char **argv)
{
	int sig = SIGTERM, status = 0, i = 1;

	/* getopt does not fit: "-9" and "-INT" are signals, and a later "-5" is a group. */
	if (i < argc && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
		printf("usage: %s", usage);
		return tool_finish(0);
	}
	if (i < argc && strcmp(argv[i], "-l") == 0)
		return list_signals();
	if (i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0) {
		const char *name = argv[i++] + 1;

		if (strcmp(name, "s") == 0) {
			if (i == argc)
				tool_usage(usage);
			name = argv[i++];
		}
		sig = signal_number(name);
		if (sig < 0)
			errx(2, "found \"%s\", expected a signal (kill -l lists them)", name);
	}
	if (i < argc && strcmp(argv[i], "--") == 0)
		i++;
	if (i == argc)
		tool_usage(usage);
	for (; i < argc; i++) {
		char *end;
		long pid = strtol(argv[i], &end, 10);

		if (end == argv[i] || *end != '\0' || pid != (pid_t)pid) {
			warnx("found \"%s\", expected a process id", argv[i]);
			status = 2;
		} else if (kill((pid_t)pid, sig) < 0) {
			warn("%s", argv[i]);
			status = status == 0 ? 1 : status;
		}
	}
	return status;
}
