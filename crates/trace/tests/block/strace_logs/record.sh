#!/bin/sh
# Makes the logs anew: sh record.sh FOLDER. Needs gcc, strace 6.1 or later, and a file system below /tmp
# that punches holes. The calls that ask for an offset are taken out of the logs: the program makes
# them to know what the log must lead to. The environment is a fixed one: -v writes it out. Pids, addresses and times are different each time.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" /tmp/ops
to=$(cd "$1" && pwd)
cd /tmp/ops
gcc -static -O1 -pthread -o op "$here/ops.c"

hide() {
    grep -v -E 'lseek\([^,]*, 0, (SEEK_CUR|0x1( /\* SEEK_CUR \*/)?)\) +=' |
        sed 's/0x7ff[0-9a-f]* .. [0-9]* vars ../0x7ffc5e0f1a28 \/* 9 vars *\//'
}

# NAME of the log, "one" process or "many", options of strace.
# The log goes to a file.
written() {
    name=$1 count=$2
    shift 2
    prepare
    env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin strace "$@" -o raw ./op $args >list 2>/dev/null
    cp list "$to/$count.list"
    hide <raw >"$to/$name.log"
}
# The log goes to standard error, where the program's messages go as well.
printed() {
    name=$1 count=$2
    shift 2
    prepare
    env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin strace "$@" ./op $args >list 2>raw
    cp list "$to/$count.list"
    hide <raw >"$to/$name.log"
}
# The log goes to a file for each process.
apart() {
    name=$1 count=$2
    shift 2
    prepare
    rm -f raw.* "$to/$name".*
    env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin strace "$@" -o raw ./op $args >list 2>/dev/null
    cp list "$to/$count.list"
    for log in raw.*; do
        hide <"$log" >"$to/$name.${log##*.}"
    done
}
prepare() {
    rm -f a b c d log list
    case $count in one) args= ;; many) args=many ;; esac
}

written plain one -y
written bare one
written forked many -f -y
printed stderr-f many -f -y
printed stderr-f-bare many -f
written all-f many -f -y -i -n -Y -T -ttt -x -C
printed all-stderr-f many -f -y -i -n -Y -T -tt -xx -C
written relative many -f -y -r
printed relative-stderr many -f -y -r -t
written stacks one -y -k
written numbers one -y -X raw
written comments one -y -X verbose -s4
written undecoded one -y -e raw=read,write,pread64,pwrite64,lseek,readv,mmap,close,dup2,ftruncate,fallocate,pwritev2,preadv2
written verbose one -yy -v
written succeeded many -f -y -z
printed quiet many -f -y -qq
printed dumped one -y -e write=2
apart apart many -ff -ttt
apart apart-day many -ff -y -tt
