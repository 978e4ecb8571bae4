"""cachegrind on the dumped streams: stream, references, CPU seconds, misses by level.

A program loads from memory at the stream's addresses (`touch`); it does so more often
in a second run, and the difference is what the references cost, instrumentation
included. For each of them the program also reads the address and runs a loop, which
cachegrind simulates too: it has no mode that takes addresses.
"""

import re
import resource
import subprocess
import sys

directory, touch = sys.argv[1], sys.argv[2]
MORE = 5


def measure(name, times):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(
        ["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null",
         "--I1=32768,8,64", "--D1=32768,8,64", "--LL=2097152,16,64",
         touch, f"{directory}/{name}.u64", str(times)],
        check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    reads = [int(re.search(rf"{level}\s+misses:.*\(\s*([\d,]+) rd", run.stderr)[1].replace(",", ""))
             for level in ("D1", "LLd")]
    return seconds, int(run.stdout.split()[0]), reads


for name in ["hot", "zipf", "uniform", "strided"]:
    once, many = measure(name, 1), measure(name, 1 + MORE)
    seconds, count = many[0] - once[0], many[1] - once[1]
    misses = " ".join(str((b - a) // MORE) for a, b in zip(once[2], many[2]))
    print(f"{name} {count} {seconds:.3f} {count / seconds / 1e6:.1f} {misses}", flush=True)
