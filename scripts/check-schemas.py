#!/usr/bin/python3
"""Holds JSON documents against the schemas that the program prints.

    scripts/check-schemas.py PIEBALD FOLDER

FOLDER/NAME/*.json are documents of `PIEBALD schema NAME`. Debian's interpreter runs this: the
validator is its package python3-jsonschema. Fails if a document does not fit, if there is none,
or if a document that was made wrong is not refused.
"""
import copy
import json
import subprocess
import sys
from pathlib import Path

from jsonschema import Draft202012Validator

# Documents of these are many; one of each shows that the schema refuses what is wrong.
SHOWN = 5


def validator(piebald, name):
    done = subprocess.run([piebald, "schema", name], capture_output=True, text=True, check=True)
    schema = json.loads(done.stdout)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def wrong(document):
    """The document with one thing wrong, once for each kind of wrong, and what it is."""
    top = document[0] if isinstance(document, list) else document
    for key, value in top.items():
        if isinstance(value, str):
            yield key, "a number in place of a text", 7
        elif isinstance(value, list):
            yield key, "a text in place of a list", "none"
        elif isinstance(value, (int, float)):
            yield key, "a list in place of a number", []


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    piebald, folder = sys.argv[1], Path(sys.argv[2])
    bad = total = refused = 0
    for group in sorted(p for p in folder.iterdir() if p.is_dir()):
        check = validator(piebald, group.name)
        documents = sorted(group.glob("*.json"))
        for path in documents:
            document = json.loads(path.read_text(encoding="utf-8"))
            total += 1
            errors = list(check.iter_errors(document))
            bad += bool(errors)
            for error in errors[:SHOWN]:
                print(f"{group.name}: {path.name}: {error.json_path}: {error.message[:200]}")
        for key, what, value in wrong(json.loads(documents[0].read_text(encoding="utf-8"))):
            planted = copy.deepcopy(json.loads(documents[0].read_text(encoding="utf-8")))
            (planted[0] if isinstance(planted, list) else planted)[key] = value
            refused += 1
            if check.is_valid(planted):
                print(f"{group.name}: {key}: {what} is taken")
                bad += 1
        print(f"{group.name}: {len(documents)} documents")
    print(f"schemas: {total} documents, {refused} made wrong, {bad} defects")
    sys.exit(bad > 0 or total == 0 or refused == 0)


if __name__ == "__main__":
    main()
