/*
 * main.c - tasks of FreeRTOS that record: one sends numbers to another one, and the tick interrupts
 * a third in its records. Writes the trace to the file that its argument names, and
 * prints the account.
 */
#include <FreeRTOS.h>

#include <fcntl.h>
#include <queue.h>
#include <stdbool.h>
#include <stdio.h>
#include <task.h>
#include <unistd.h>

#define NUMBERS 200
#define TICKS   50u

void trace_init(void);
void trace_write(int fd);

static QueueHandle_t queue;
static int file;
static volatile bool spun;

static void
sender(void *arg)
{
	(void)arg;
	while (!spun)
		vTaskDelay(1);
	for (int i = 0; i < NUMBERS; i++) {
		if (i % 20 == 0)
			vTaskDelay(1);
		xQueueSend(queue, &i, portMAX_DELAY);
	}
	vTaskDelete(NULL);
}

static void
receiver(void *arg)
{
	struct ktr_stats s;

	(void)arg;
	while (!spun)
		vTaskDelay(1);
	for (int i = 0, n; i < NUMBERS; i++) {
		xQueueReceive(queue, &n, portMAX_DELAY);
		CTR2(KTR_PROC, "number %d of %d", n, NUMBERS);
		if (n != i)
			_exit(1);
	}
	vTaskDelay(2);
	trace_write(file);
	ktr_stats_get(0, &s);
	dprintf(1, "%lu recorded, %lu refused\n", s.recorded, s.suppressed + s.dropped);
	_exit(0);
}

/* Is preempted wherever it is. */
static void
spinner(void *arg)
{
	(void)arg;
	for (unsigned n = 0; xTaskGetTickCount() < TICKS; n++)
		CTR1(KTR_PROC, "spin %u", n);
	spun = true;
	vTaskDelete(NULL);
}

int
main(int argc, char **argv)
{
	file = argc == 2 ? open(argv[1], O_CREAT | O_WRONLY | O_TRUNC, 0644) : -1;
	if (file < 0)
		return 2;
	trace_init();
	queue = xQueueCreate(4, sizeof(int));
	xTaskCreate(receiver, "receiver", configMINIMAL_STACK_SIZE, NULL, 3, NULL);
	xTaskCreate(sender, "sender", configMINIMAL_STACK_SIZE, NULL, 2, NULL);
	xTaskCreate(spinner, "spinner", configMINIMAL_STACK_SIZE, NULL, 1, NULL);
	vTaskStartScheduler();
	return 1;
}
