# kestrel.gdb - what `make debug` runs in gdb: up to the kernel's first C function, then the prompt.
set pagination off
set confirm off
set disassemble-next-line auto
thbreak kernel_main
continue
