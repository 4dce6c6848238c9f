# busybox.sh - what busybox prints in the guest, it prints on the host, too. BB is its path; DIR: an empty folder.
set -u
bb() { "$BB" "$@"; }
bb mkdir -p "$DIR/a/b"; cd "$DIR"
# text
bb seq 200 >n; bb awk '{s+=$1*1.5; if ($1%7==0) c[$1%3]++} END {printf "%.3f %d %d %d\n", s/NR, c[0], c[1], c[2]}' n
bb awk 'BEGIN {printf "%.10f %.6e %s\n", 22/7, 1/3e10, substr("kestrel",3)}'
bb sed -n -e 's/^\(.\)5$/<\1>/p' n | bb tr '\n' ' '; echo
bb sort -r n | bb head -3; bb sort -n n | bb tail -2; bb uniq -c n | bb wc; bb cut -c1 n | bb sort | bb uniq -c
bb grep -c 1 n; bb grep -E '^(1|2)0+$' n; bb expr 6 '*' 7; bb printf '%05d|%x|%s\n' 42 255 text
echo kestrel | bb od -c; echo kestrel | bb base64; bb md5sum <n; bb sha256sum <n
bb tac n | bb head -1; bb nl n | bb tail -1; bb paste -s -d, n | bb cut -c1-20; bb fold -w 30 n | bb wc -l
# files
echo one >a/f; bb cp -r a c; bb mv c/f c/b/g; bb find . | bb sort; bb cmp a/f c/b/g && echo same
bb diff a/f n >d; echo diff $?; bb touch -d '2020-01-02 03:04:05' a/f; bb stat -c '%n %s %a %Y %F' a/f
bb chmod 640 a/f; bb stat -c %a a/f; bb chmod u+x,g-r a/f; bb stat -c %A a/f
bb dd if=n of=m bs=10 skip=2 count=3 2>/dev/null; bb wc -c m; bb truncate -s 5 m; bb cat m; bb truncate -s 8 m; bb od -An -tx1 m
bb tar cf t.tar a n; bb tar tf t.tar; bb rm -r a; bb tar xf t.tar; bb cat a/f; bb gzip n; bb gunzip -c n.gz | bb md5sum; bb gunzip n.gz
bb find . -type f | bb sort | bb xargs -n 2 echo; echo a b c | bb xargs -n1 echo item; bb rm -rf c; bb ls -1
bb ln n hard; bb ln -s n soft; bb ln -s "$DIR/soft" far; bb stat -c '%n %h %F' hard soft; bb readlink soft; bb realpath far | bb sed 's,.*/,,'; bb find . -type l | bb sort
bb cat far | bb head -1; bb cp -P soft soft2; bb test -h soft2 && echo link; bb tar cf l.tar soft hard n; bb rm soft hard; bb tar xf l.tar; bb ls -l | bb sed 1d | bb awk '{print $1, $2, $9, $10, $11}'
umask 077; >private; bb stat -c %a private
# the shell
for i in 1 2 3; do echo "$i $((i * i))"; done | while read x y; do echo "$y-$x"; done
f() { local v=$1; echo "f $v"; return 3; }; f x; echo $?
case kestrel in k*l) echo match ;; esac; echo "${BB##*/}" "$(echo nested $(echo twice))"
(exit 7); echo $?; bb false || echo or; bb true && echo and; ! bb true; echo $?
bb cat <<END
here $((6 * 7))
END
trap 'echo trapped' USR1; kill -USR1 $$; trap - USR1
trap 'echo bye' EXIT; (trap 'echo inner; exit 4' TERM; kill -TERM $(exec "$BB" sh -c 'echo $PPID')); echo $?
"$BB" sleep 100 & p=$!; kill $p; wait $p; echo $?
bb sh -c 'kill -9 $$'; echo $?
bb timeout 1 "$BB" sleep 100; echo $?
"$BB" sleep 100 & p=$!; kill -STOP $p; ("$BB" sleep 0.1 &); bb sleep 0.3; echo alive; kill -9 $p; wait $p 2>/dev/null; echo $?
{ bb sleep 0.1; echo late; } & echo early; wait
bb seq 100000 | bb head -1; bb yes | bb head -2
read line <n; echo $line; exec 3<n; read -r a <&3; read -r b <&3; echo $a $b; exec 3<&-
bb date -u -d @86400; bb cal 1 2000 | bb head -1; bb basename /a/b.c .c; bb dirname /a/b.c
bb dc -e '2 3 + p' ; echo '2^10' | bb bc; bb factor 1001; bb usleep 1000; bb env -i A=1 "$BB" env
# /proc: numbers become N
n() { bb sed 's/[0-9][0-9]*/N/g'; }
bb cat /proc/self/comm /proc/self/limits | bb head -3 | bb cut -c1-24; bb tr '\0' ' ' </proc/self/cmdline | bb sed 's,[^ ]*/,,g'; echo
bb awk '{print NF, $2}' /proc/self/stat; bb grep -E '^(Name|Umask|State|TracerPid|Threads|SigPnd|ShdPnd):' /proc/self/status
bb awk '{print NF}' /proc/self/statm /proc/uptime /proc/loadavg; bb grep -E '^(MemTotal|MemFree|MemAvailable|Buffers|Cached|SwapTotal):' /proc/meminfo | n | bb tr -s ' '
bb sed -n '/^cpu /p; /^btime/p; /^ctxt/p' /proc/stat | n; bb grep -c '^processor' /proc/cpuinfo | n; bb head -1 /proc/partitions
bb grep -E ' (/|/proc) ' /proc/mounts | bb grep -c rw | n; bb readlink /proc/mounts; bb ls -1d /proc/self /proc/thread-self /proc/1; bb test -d /proc/self/task/$(bb readlink /proc/self) || echo gone
bb readlink /proc/self/fd/0 <n | bb sed 's,.*/,,'; bb cat /proc/self/fd/0 <n | bb md5sum; bb ls /proc/self/task | bb wc -l; echo x | bb readlink /proc/self/fd/0 | n; (cd /proc/self/fd && bb pwd | n)
bb tail -1 /proc/self/maps | bb awk '{print NF > 4}'; bb grep -c stack /proc/self/maps; bb ls -ld /proc/self/fd /proc/self/environ /proc/self/maps /proc/self/cwd | bb awk '{print $1}'
bb cat /proc/nosuch /proc/999999999 2>&1 | bb sed 's,.*: ,,'; bb rmdir /proc/self 2>/dev/null || echo kept; bb sh -c 'echo short >/proc/self/comm; read x </proc/self/comm; echo $x'
bb pidof nosuchprogram || echo none; "$BB" sleep 50 & p=$!; bb kill -0 $p && bb kill $p; wait $p; echo $?
bb free | bb sed -n 1,2p | n | bb tr -s ' '; bb uptime | bb grep -c 'load average'; bb top -b -n 1 | bb sed -n '3,4p' | n | bb tr -s ' '
bb sysctl -n kernel.pid_max vm.overcommit_memory | n; bb sysctl -n nosuch.name 2>/dev/null || echo no such name
