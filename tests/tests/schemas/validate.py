"""Holds documents against their schemas, and what is no such document too: with one member under another name, a schema has to refuse it.

Standard input: {"schemas": {NAME: SCHEMA}, "documents": [{"schema": NAME, "words": COMMAND, "document": JSON}]}.
Exit code 1 where something is wrong; then each problem is a line of standard output, else the last line counts what was refused."""

import json
import sys

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import SchemaError, best_match

# How many members of one document are renamed, and how many items of a list stay for that.
MOST, ITEMS = 150, 12


def additional(validator, allowed, instance, schema):
    """Notes each object that its schema closes."""
    if allowed is False and isinstance(instance, dict):
        CLOSED[id(instance)] = instance
    yield from Draft202012Validator.VALIDATORS["additionalProperties"](validator, allowed, instance, schema)


CLOSED = {}
Watching = validators.extend(Draft202012Validator, {"additionalProperties": additional})


def closed(schema, document):
    CLOSED.clear()
    assert Watching(schema).is_valid(document)
    return list(CLOSED.values())


def spread(items, most):
    """So many of them, from all over the list."""
    step = max(1, -(-len(items) // most))
    return items[::step]


def shortened(document):
    """The same with shorter lists: what a schema says of items it says of each."""
    if isinstance(document, list):
        return [shortened(item) for item in document[:ITEMS]]
    if isinstance(document, dict):
        return {name: shortened(value) for name, value in document.items()}
    return document


def renamed(schema, document):
    """The members whose other name the schema let pass, and how many it refused."""
    validator, passed, refused = Draft202012Validator(schema), [], 0
    document = shortened(document)
    members = [(held, name) for held in closed(schema, document) for name in list(held)]
    for held, name in spread(members, MOST):
        value = held.pop(name)
        held[name + "Renamed"] = value
        if validator.is_valid(document):
            passed.append(name)
        else:
            refused += 1
        del held[name + "Renamed"]
        held[name] = value
    return passed, refused


def main():
    given = json.load(sys.stdin)
    problems, refused, counted = [], {}, 0
    for name, schema in given["schemas"].items():
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            problems.append(f"{name}: no valid schema: {error.message}")
    if problems:
        return problems, 0
    for one in given["documents"]:
        name, document = one["schema"], one["document"]
        schema = given["schemas"][name]
        error = best_match(Draft202012Validator(schema).iter_errors(document))
        if error is not None:
            place = "/".join(str(part) for part in error.absolute_path)
            problems.append(f"{name}: `writ {one['words']}` at /{place}: {error.message[:500]}")
            continue
        passed, count = renamed(schema, document)
        problems.extend(f"{name}: `writ {one['words']}`: {member} may have another name" for member in passed)
        # A map of anything has no names of its own: then a value of another type.
        if count == 0 and not Draft202012Validator(schema).is_valid({"key": 7}):
            count = 1
        refused[name] = refused.get(name, 0) + count
        counted += count
    problems.extend(f"{name}: it refused nothing" for name, count in refused.items() if count == 0)
    return problems, counted


if __name__ == "__main__":
    wrong, count = main()
    print("\n".join(wrong) if wrong else count)
    sys.exit(1 if wrong else 0)
