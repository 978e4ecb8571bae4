"""One policy of libCacheSim over one trace, in the line format of replay_rate: policy,
objects, requests, misses, millions of requests per second of processor time, and the bytes
that the cache took for each object that fits.

peer.py TRACE POLICY OBJECTS
"""
import resource
import sys

import libcachesim as lcs

path, name, objects = sys.argv[1], sys.argv[2], int(sys.argv[3])
policies = {
    "lru": lcs.LRU,
    "fifo": lcs.FIFO,
    "clock": lcs.Clock,
    "sieve": lcs.Sieve,
    "arc": lcs.ARC,
    "2q": lcs.TwoQ,
    "lirs": lcs.LIRS,
    "s3-fifo": lcs.S3FIFO,
    "w-tinylfu": lcs.WTinyLFU,
    "min": lcs.Belady,
}


def processor_seconds():
    use = resource.getrusage(resource.RUSAGE_SELF)
    return use.ru_utime + use.ru_stime


def memory():
    """Bytes of this process in memory that come from no file."""
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return float("nan")


kind = lcs.TraceType.VSCSI_TRACE if path.endswith(".vscsi") else lcs.TraceType.ORACLE_GENERAL_TRACE
options = lcs.ReaderInitParam(ignore_obj_size=True)
reader = lcs.TraceReader(path, kind, options)
before = memory()
cache = policies[name](objects)
began = processor_seconds()
miss_ratio, _ = cache.process_trace(reader)
took = processor_seconds() - began
bytes_each = (memory() - before) / objects
requests = reader.get_num_of_req()
print(name, objects, requests, round(miss_ratio * requests), requests / took / 1e6, bytes_each)
