# kestrel.gdb - what `make debug` runs in gdb: symbols, and the machine that waits.
set pagination off
set confirm off
set disassemble-next-line auto
target remote localhost:1234
hbreak kernel_main
continue
