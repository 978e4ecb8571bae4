#!/usr/bin/env bash
# Makes the star schema of SRM-buffer's database experiments in miniature, for backends in a guest
# and in the modelled kernel, and records the latter: star.sh PIEBALD, in the directory that
# `piebald reproduce srm --guest` looks in. Needs PostgreSQL 15; 90 MB and a minute.
#
# As ../srm/star.sh, but for two things. The fact table has 125,000 records (16 MiB), four times
# the last level. Of a dimension only the records are there that the query selects, a tenth,
# so that hash tables and the share of the fact's records that match are those of the dimensions
# of 24 and 98 MiB, which have 2.6 and 10 MiB here.
set -eu
out=$PWD
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=/usr/lib/postgresql/15/bin
piebald=$1

# PostgreSQL refuses root, and its own user cannot enter root's home: both work elsewhere.
work=$(mktemp -d "${TMPDIR:-/var/tmp}/piebald-star.XXXXXX")
trap 'rm -rf "$work"' EXIT
as=()
if [ "$(id -u)" = 0 ]; then
    as=(setpriv --reuid=postgres --regid=postgres --clear-groups env "HOME=$work")
    chown postgres "$work"
fi
cp "$here/star.sql" "$work"
cd "$work"
chmod 644 star.sql

say_last() { tail -n 5 "$1" >&2; exit 1; }

"${as[@]}" "$bin/initdb" -D star -A trust --no-sync --locale=C -E UTF8 --wal-segsize=1 >initdb.log 2>&1 ||
    say_last initdb.log
# The planner and the pool as in ../srm/backend.sh. An error ends a backend, so that nobody takes
# it for an answer.
cat >>star/postgresql.conf <<'SETTINGS'
autovacuum = off
dynamic_shared_memory_type = sysv
enable_mergejoin = off
enable_nestloop = off
enable_sort = off
exit_on_error = on
huge_pages = off
jit = off
log_checkpoints = off
log_timezone = GMT
max_parallel_workers_per_gather = 0
max_wal_senders = 0
max_wal_size = 4MB
min_wal_size = 2MB
shared_buffers = 32MB
timezone = GMT
wal_level = minimal
work_mem = 256MB
SETTINGS
backend=("$bin/postgres" --single -F -D star postgres)
"${as[@]}" "${backend[@]}" <star.sql >star.log 2>&1 || say_last star.log

# A query four times, recorded after the backend has started.
record() { # NAME QUERY
    printf '%s\n' "$2" "$2" "$2" "$2" >"$1.sql"
    "${as[@]}" "$piebald" record --quiet --skip 17M -o "$1.pbr" -- "${backend[@]}" <"$1.sql" >record.log 2>&1 ||
        say_last record.log
}
for d in 1 4; do
    record "join$d" "SELECT sum(f.measure + d.payload) FROM fact f JOIN dim$d d ON f.k$d = d.id WHERE d.sel < 10"
done
record scan "SELECT g, count(*), sum(measure) FROM fact WHERE measure % 2 = 0 GROUP BY g"
# As it is now it goes to the guest: ended in order, without what it logs.
rm -rf "$out/star"
cp -a star "$out/star"
cp ./*.pbr "$out"
