#!/usr/bin/env python3
"""A tool pack: an executable inside an environment that answers two actions.

docs/tools.md walks through it. It needs nothing but Python.
"""

import json
import pathlib
import sys

TOOLS = [
    {
        "name": "note_add",
        "description": "Add a line to the notes of this workspace, and say how many there are.",
        "input_schema": {
            "type": "object",
            "additionalProperties": False,
            "required": ["text"],
            "properties": {"text": {"type": "string", "minLength": 1}},
        },
    },
    {
        "name": "note_list",
        "description": "List the notes of this workspace.",
        "input_schema": {"type": "object", "additionalProperties": False},
        "annotations": {"read_only": True},
    },
]

NOTES = pathlib.Path("notes.txt")  # a pack runs in the workspace


def run(name, arguments):
    notes = NOTES.read_text().splitlines() if NOTES.exists() else []
    if name == "note_add":
        notes.append(" ".join(arguments["text"].split()))
        NOTES.write_text("\n".join(notes) + "\n")
        return {"notes": len(notes)}
    return "\n".join(notes) or "no notes yet"


request = json.load(sys.stdin)
if request["action"] == "list":
    answer = {"tools": TOOLS}
else:
    try:
        answer = {"ok": True, "result": run(request["name"], request["arguments"])}
    except OSError as error:
        answer = {"ok": False, "error": str(error)}
json.dump(answer, sys.stdout)
