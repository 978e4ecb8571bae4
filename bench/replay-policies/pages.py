"""The 4 KiB pages of the requests of a vscsi trace (version 1), in order, as an oracleGeneral
trace: what a buffer cache is asked for.

pages.py FILE.vscsi OUTPUT
"""
import sys

import numpy as np
import oracle

REQUEST = np.dtype([("sn", "<u4"), ("bytes", "<u4"), ("segments", "<u4"), ("command", "<u2"),
                    ("version", "<u2"), ("sector", "<u8"), ("time", "<u8")])

requests = np.fromfile(sys.argv[1], REQUEST)
first = requests["sector"] * 512 // 4096
end = (requests["sector"] * 512 + requests["bytes"] + 4095) // 4096
pages = [np.arange(a, b, dtype=np.uint64) for a, b in zip(first, end)]
oracle.write(sys.argv[2], np.concatenate(pages))
