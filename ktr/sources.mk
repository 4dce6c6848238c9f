# sources.mk - which files of ktr/ belong to what. An embedder compiles KTR_KERNEL_SRCS with a ktr_port.h
# of its own; all paths are from the root of the repository.

# The log itself, its control, and the stream's encoder. Freestanding.
KTR_KERNEL_SRCS := \
	ktr/class.c \
	ktr/control.c \
	ktr/crc32c.c \
	ktr/data.c \
	ktr/dynamic.c \
	ktr/encode.c \
	ktr/event.c \
	ktr/event_local.c \
	ktr/fmt.c \
	ktr/frame.c \
	ktr/glob.c \
	ktr/hook.c \
	ktr/image_read.c \
	ktr/image_root.c \
	ktr/intern.c \
	ktr/persist.c \
	ktr/probe.c \
	ktr/ring.c \
	ktr/size.c \
	ktr/stream.c \
	ktr/word.c

# Formats of events as Linux's tools read them, for a kernel that has such files. Freestanding.
KTR_FORMAT_SRCS := \
	ktr/event_format.c \
	ktr/param.c

# Bodies of the port's functions, for embedders whose port uses ktr/port/ktr_port_default.h.
KTR_PORT_SRCS := ktr/port/ktr_port_default.c

# The stream's decoder. Freestanding, but for the allocator that it is given.
KTR_DECODE_SRCS := \
	ktr/class.c \
	ktr/crc32c.c \
	ktr/decode.c \
	ktr/decode_data.c \
	ktr/decode_frame.c \
	ktr/decode_store.c \
	ktr/event.c \
	ktr/fmt.c \
	ktr/frame.c \
	ktr/glob.c \
	ktr/map.c \
	ktr/param.c \
	ktr/word.c

# The program ktrdump, on the host and in the guest. Needs a C library with getopt_long().
KTR_TOOL_SRCS := \
	$(KTR_DECODE_SRCS) \
	ktr/tools/export/graph.c \
	ktr/tools/ktrace_file.c \
	ktr/tools/ktrdump.c \
	ktr/tools/ktrdump_armor.c \
	ktr/tools/ktrdump_export.c \
	ktr/tools/ktrdump_filter.c \
	ktr/tools/ktrdump_connect.c \
	ktr/tools/ktrdump_diff.c \
	ktr/tools/ktrdump_input.c \
	ktr/tools/ktrdump_json.c \
	ktr/tools/ktrdump_main.c \
	ktr/tools/ktrdump_options.c \
	ktr/tools/ktrdump_text.c \
	ktr/tools/ktrdump_why.c \
	ktr/tools/memory.c \
	ktr/tools/merge.c \
	ktr/tools/model/activity.c \
	ktr/tools/model/activity_meaning.c \
	ktr/tools/model/span.c \
	ktr/tools/out.c \
	ktr/tools/report/diff.c \
	ktr/tools/report/diff_print.c \
	ktr/tools/report/events.c \
	ktr/tools/report/io.c \
	ktr/tools/report/lock.c \
	ktr/tools/report/net.c \
	ktr/tools/report/print.c \
	ktr/tools/report/report.c \
	ktr/tools/report/sample.c \
	ktr/tools/report/table.c \
	ktr/tools/report/tables.c \
	ktr/tools/reverse.c \
	ktr/tools/symbols.c

# What only the host's ktrdump has: memory dumps, and other tools' formats. Needs libelf and zlib.
KTR_TOOL_HOST_SRCS := \
	ktr/event_format.c \
	ktr/tools/core.c \
	ktr/tools/export/chrome.c \
	ktr/tools/export/chrome_entry.c \
	ktr/tools/export/ctf.c \
	ktr/tools/export/ctf_head.c \
	ktr/tools/export/export.c \
	ktr/tools/export/folded.c \
	ktr/tools/export/fxt.c \
	ktr/tools/export/fxt_known.c \
	ktr/tools/export/fxt_record.c \
	ktr/tools/export/html.c \
	ktr/tools/export/html_column.c \
	ktr/tools/export/html_page.c \
	ktr/tools/export/lane.c \
	ktr/tools/export/schedgraph.c \
	ktr/tools/export/schedgraph_line.c \
	ktr/tools/export/schedgraph_source.c \
	ktr/tools/export/svg.c \
	ktr/tools/export/svg_bar.c \
	ktr/tools/export/svg_draw.c \
	ktr/tools/export/svg_page.c \
	ktr/tools/export/svg_thread.c \
	ktr/tools/export/temp.c \
	ktr/tools/export/timeline.c \
	ktr/tools/export/tracedat.c \
	ktr/tools/export/tracedat_comm.c \
	ktr/tools/export/tracedat_head.c \
	ktr/tools/linux.c

# Everything but the programs, for unit tests and other hosted users: with -Iktr/port/host.
KTR_HOST_SRCS := $(sort $(KTR_KERNEL_SRCS) $(KTR_DECODE_SRCS)) ktr/port/host/ktr_port.c
