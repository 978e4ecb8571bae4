"""Writes a trace of draws from a Zipf distribution in the oracleGeneral format.

zipf.py FILE [REQUESTS] [IDS] [EXPONENT] [SEED]
"""
import sys

import numpy as np
import oracle

path = sys.argv[1]
requests, ids = (int(float(a)) for a in (sys.argv[2:4] + ["20e6", "1e6"][len(sys.argv[2:4]):]))
exponent = float(sys.argv[4]) if len(sys.argv) > 4 else 1.0
seed = int(sys.argv[5]) if len(sys.argv) > 5 else 42

draw = np.random.default_rng(seed)
shares = 1.0 / np.arange(1, ids + 1) ** exponent
ranks = np.searchsorted(np.cumsum(shares) / shares.sum(), draw.random(requests), side="right")
# Popularity says nothing about the number of a block.
blocks = draw.permutation(ids)[np.minimum(ranks, ids - 1)].astype(np.uint64)

oracle.write(path, blocks)
