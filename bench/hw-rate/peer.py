"""pycachesim on the dumped streams: stream, references, CPU seconds, misses by level.

The list is built outside the clock, and the bulk call is the tool's fastest.
"""

import array
import sys
import time

from cachesim import Cache, CacheSimulator, MainMemory

directory, count = sys.argv[1], int(sys.argv[2])
for name in ["hot", "zipf", "uniform", "strided"]:
    lines = array.array("Q")
    with open(f"{directory}/{name}.u64", "rb") as file:
        lines.frombytes(file.read())
    addresses = lines.tolist()[:count]
    memory = MainMemory()
    l3 = Cache("L3", 2048, 16, 64, "LRU")
    memory.load_to(l3)
    memory.store_from(l3)
    l2 = Cache("L2", 1024, 8, 64, "LRU", store_to=l3, load_from=l3)
    l1 = Cache("L1", 64, 8, 64, "LRU", store_to=l2, load_from=l2)
    simulator = CacheSimulator(l1, memory)
    start = time.process_time()
    simulator.load(addresses, 1)
    seconds = time.process_time() - start
    misses = " ".join(str(s["MISS_count"]) for s in list(simulator.stats())[:3])
    print(f"{name} {count} {seconds:.3f} {count / seconds / 1e6:.1f} {misses}", flush=True)
