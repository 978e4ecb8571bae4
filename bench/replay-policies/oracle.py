"""Traces in the oracleGeneral format, which both programs read."""
import numpy as np

RECORD = np.dtype([("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")])


def write(path, ids):
    """Requests of one object each, in order."""
    # The request of the same object that comes next, counted from 1; -1 = none.
    order = np.argsort(ids, kind="stable")
    following = np.full(len(ids), -1, dtype=np.int64)
    same = ids[order[1:]] == ids[order[:-1]]
    following[order[:-1][same]] = order[1:][same] + 1
    trace = np.zeros(len(ids), dtype=RECORD)
    trace["id"], trace["size"], trace["next"] = ids, 1, following
    trace.tofile(path)
