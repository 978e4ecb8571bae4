#!/bin/sh
# A PostgreSQL backend of its own, as the server would have for one client:
#   backend.sh QUERY.sql     in the directory where `star.sh` made the cluster
# RECORDER: the words of a command that records what follows it.
# PostgreSQL refuses root: under root, run what runs this (the recorder too) by
# `setpriv --reuid=postgres --regid=postgres --clear-groups`. A change of user inside a recording
# leaves it incomplete.
#
# The planner is held to the paper's plans (section 4.2): one hash table in memory, no parallel
# workers; a pool of 32 MB, of which the scan of a table above 8 MB takes a ring of 256 KB. A
# larger pool would give the scan of a small dimension no ring; the probes, which are what is
# recorded, would not differ.
set -eu
# shellcheck disable=SC2086  # words
exec ${RECORDER:-} /usr/lib/postgresql/15/bin/postgres --single -F -D star -c jit=off \
    -c max_parallel_workers_per_gather=0 -c autovacuum=off -c shared_buffers=32MB \
    -c work_mem=256MB -c enable_mergejoin=off -c enable_nestloop=off -c enable_sort=off \
    -c wal_level=minimal -c max_wal_senders=0 postgres <"$1"
