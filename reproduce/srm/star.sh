#!/usr/bin/env bash
# Makes the star schema of SRM-buffer's database experiments below the current directory, and
# the queries: star.sh. Needs PostgreSQL 15; 1.8 GB of disk and half a minute.
#
# Section 4.2: fact table of 4 GiB in records of 128 B, dimensions of 100,000 to 600,000
# records of 256 B (24 to 146 MiB), hash join with a selection of 10 %, sequential scan with a
# hash aggregate. Scaled: the fact table, 2,000,000 records (256 MiB), 1/16. It is streamed once
# and exceeds each cache by 32 times and more; the dimensions, whose hash tables compete
# for the cache, have the paper's sizes.
set -eu
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
as=()
if [ "$(id -u)" = 0 ]; then
    as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
    chown postgres .
    # Below a home of root's that others may not enter, initdb would fail with less to say.
    if ! "${as[@]}" test -w "$PWD"; then
        echo "star.sh: $PWD: the user postgres cannot reach it; allowed: a directory such as /var/tmp/srm" >&2
        exit 1
    fi
fi
rm -rf star
"${as[@]}" /usr/lib/postgresql/15/bin/initdb -D star -A trust --no-sync --locale=C -E UTF8 >initdb.log 2>&1
cp "$here/backend.sh" "$here/star.sql" .
"${as[@]}" sh backend.sh star.sql >star.log 2>&1
if grep -a ERROR star.log >&2; then exit 1; fi
for d in 1 2 3 4 5 6; do
    echo "SELECT sum(f.measure + d.payload) FROM fact f JOIN dim$d d ON f.k$d = d.id WHERE d.sel < 10" >"join$d.sql"
done
echo "SELECT g, count(*), sum(measure) FROM fact WHERE measure % 2 = 0 GROUP BY g" >scan.sql
# Recovers the cluster after a backend that was ended in the middle.
echo "SELECT 1" >none.sql
