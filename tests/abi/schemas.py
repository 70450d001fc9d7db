#!/usr/bin/env python3
"""Checks the JSON schemas of abi/schema against the examples beside this file; speaks TAP.

  schemas.py SCHEMA...

Examples are NAME.good.WHAT.json and NAME.bad.KEYWORD.WHAT.json: a bad one must be refused by that
keyword of the schema, so that it cannot pass for another reason.
"""
import json
import pathlib
import sys
import warnings

warnings.simplefilter("ignore", DeprecationWarning)  # Debian 12 has nothing newer than RefResolver
try:
    from jsonschema import Draft7Validator, RefResolver
except ImportError:
    print("1..0 # SKIP the Python module jsonschema is missing (Debian: python3-jsonschema)")
    sys.exit(0)

EXAMPLES = pathlib.Path(__file__).parent / "examples"
results = []


def check(sentence, fault):
    """One line of TAP; fault is None when all is well."""
    results.append(fault is None)
    print(f"{'ok' if fault is None else 'not ok'} {len(results)} - {sentence}")
    if fault is not None:
        print(f"# {fault}")


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


def validator_of(schema, path):
    """A validator that finds the schemas of other files beside this one."""
    return Draft7Validator(schema, resolver=RefResolver(path.absolute().as_uri(), schema))


def undescribed(node, path=""):
    """Paths of properties that nothing explains."""
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from undescribed(item, f"{path}/{index}")
    elif isinstance(node, dict):
        properties = node.get("properties", {})
        for name, value in properties.items():
            if not {"description", "$ref", "const"} & set(value) and "definitions" not in path:
                yield f"{path}/{name}"
        for key, value in node.items():
            yield from undescribed(value, f"{path}/{key}")


def keywords(errors):
    for error in errors:
        yield error.validator
        yield from keywords(error.context)


def check_example(validator, path):
    _, verdict, *rest = path.name[: -len(".json")].split(".")
    errors = list(validator.iter_errors(load(path)))
    if verdict == "good":
        fault = f"{errors[0].json_path}: {errors[0].message}" if errors else None
    else:
        found = set(keywords(errors))
        fault = None if rest[0] in found else f"refused by {sorted(found) or 'nothing'}"
    check(f"{path.stem} is {'accepted' if verdict == 'good' else 'refused'}", fault)


def check_schema(path):
    schema = load(path)
    try:
        Draft7Validator.check_schema(schema)
        fault = None
    except Exception as error:
        fault = str(error).splitlines()[0]
    check(f"{path.name} is a valid schema", fault)
    check(f"{path.name} describes every property", ", ".join(undescribed(schema)) or None)

    examples = sorted(EXAMPLES.glob(f"{path.stem}.*.json"))
    verdicts = {example.name.split(".")[1] for example in examples}
    check(f"{path.name} has good and bad examples", None if verdicts == {"good", "bad"} else verdicts)
    validator = validator_of(schema, path)
    for example in examples:
        check_example(validator, example)
    return examples


def main(paths):
    used = [example for path in paths for example in check_schema(pathlib.Path(path))]
    strays = sorted(set(EXAMPLES.iterdir()) - set(used))
    check("every example belongs to a schema", ", ".join(map(str, strays)) or None)
    print(f"1..{len(results)}")
    return 0 if all(results) else 1


sys.exit(main(sys.argv[1:]))
