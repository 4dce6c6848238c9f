# kestrel.gdb - commands of `make debug` for gdb: run to the kernel's first C function, then prompt.
set pagination off
set confirm off
set disassemble-next-line auto
thbreak kernel_main
continue
