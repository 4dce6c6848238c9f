#!/bin/sh
# headers.sh - checks that every header compiles alone, with an architecture's compiler and the flags of its layer;
# those that are compiled alike for every architecture with x86_64 only; TAP.
#
# usage: tests/lint/headers.sh [ARCH [HEADER...]]   only those of the headers
set -eu

cd "$(dirname "$0")/../.."
arch=${1:-x86_64}
[ $# -eq 0 ] || shift
of_port() {
    sed -n "s/^$1 *:= *//p" "arch/$arch/arch.mk"
}
cc=$(of_port CROSS)gcc
command -v "$cc" >/dev/null || {
    echo "# $cc: not installed; run qemu/install-tools test"
    exit 1
}
kernel="$cc -I. -Iarch/$arch -Ikernel/abi/$arch -Ikernel/trace -ffreestanding $(of_port ARCH_CFLAGS)"
user="$cc -I. -Iuserland/lib -Ikernel/abi/$arch -D__kestrel__ -D_GNU_SOURCE -nostdinc -isystem build/guest/$arch/musl/include
    -isystem $("$cc" -print-file-name=include) $(of_port USER_CFLAGS)"
lwip=build/guest/source/lwip/src/include
inet="$kernel -Ikernel/net/lwip -I$lwip -isystem kernel/net/lwip/libc"
host="gcc -I. -Iktr/port/host"
example="riscv64-unknown-elf-gcc -ffreestanding -DHARTS=1 -DKTR_PORT_PATCH=1 -Iktr/port"

compiler_of() {
    case $1 in
    ktr/tools/* | ktr/port/host/* | tests/unit/* | tests/bench/* | tests/fuzz/*) echo "$host" ;;
    userland/* | tests/user/*) echo "$user" ;;
    ktr/examples/*) echo "$example" ;;
    kernel/net/inet/* | kernel/net/lwip/*) echo "$inet" ;;
    *) echo "$kernel" ;;
    esac
}

# Files in ktr/port/ itself are the ends of <ktr_port.h> headers.
list=$(git ls-files -co --exclude-standard '*.h' | while read -r f; do [ -e "$f" ] && echo "$f"; done |
    grep -vE "^(arch|kernel/abi|tests/user)/(aarch64|x86_64)/|^ktr/port/ktr_" || true)
list="$list
$(git ls-files -co --exclude-standard "arch/$arch/*.h" "kernel/abi/$arch/*.h" "tests/user/$arch/*.h")"

# What has no architecture is compiled once, with the first one's.
[ "$arch" = x86_64 ] || list=$(echo "$list" | grep -vE "^(ktr/(tools|port/host|examples)|tests/(unit|bench|fuzz))/")
[ -d "$lwip" ] || list=$(echo "$list" | grep -v '^kernel/net/inet/')
[ $# -eq 0 ] || list=$(echo "$list" | grep -Fx "$(printf '%s\n' "$@")" || true)

bad=0
n=0
for h in $list; do
    n=$((n + 1))
    # A port's md/ header is the end of its contract header, and is only read through that one.
    case $h in
    arch/*/md/*) name=arch/${h##*/}; [ -e "$name" ] || name=$h ;;
    *) name=$h ;;
    esac
    # shellcheck disable=SC2046  # a list of words
    if out=$(printf '#include "%s"\n#include "%s"\n' "$name" "$name" |
        $(compiler_of "$h") -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Werror -Wmissing-prototypes -Wundef -fsyntax-only -x c - 2>&1); then
        echo "ok $n - $h"
    else
        printf '%s\n' "$out" | sed 's/^/# /'
        echo "not ok $n - $h"
        bad=1
    fi
done
echo "1..$n"
exit $bad
