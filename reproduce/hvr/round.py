"""Reads a document of JSON, changes it, and writes it, again and again."""

import json
import sys

text = open(sys.argv[1], encoding="ascii").read()
for turn in range(1000):
    document = json.loads(text)
    for entry in document:
        entry["turn"] = turn
    text = json.dumps(document)
