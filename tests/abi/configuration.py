#!/usr/bin/env python3
"""The table of options in docs/configuration.md, made of abi/schema/sandbox.json; speaks TAP.

  configuration.py SCHEMA PAGE BODIES    checks that the page has the schema's table, and that its engine
                                         fields are where tests/golden/create-bodies.json has the values
  configuration.py --write SCHEMA PAGE   puts it there
"""
import json
import pathlib
import re
import sys

BEGIN, END = "<!-- options: made by tests/abi/configuration.py --write -->\n", "<!-- end -->\n"
HEAD = "| option | type | default | engine | |\n|---|---|---|---|---|\n"


def bounds(node):
    low, high = node.get("minimum"), node.get("maximum")
    if low is None and high is None:
        return ""
    return f" {low} to {high}" if high is not None else f" ≥ {low}"


def type_of(node, root):
    if "$ref" in node:
        return "object" if node["$ref"].endswith(".json") else type_of(resolve(node, root), root)
    if "anyOf" in node:
        return " or ".join(dict.fromkeys(type_of(one, root) for one in node["anyOf"]))
    if "const" in node:
        return f'`"{node["const"]}"`'
    if "enum" in node:
        return ", ".join(f'`"{word}"`' for word in node["enum"])
    if node.get("type") == "array":
        items = node.get("items", {})
        return "array of " + ("objects" if "oneOf" in items else type_of(items, root) + "s")
    if node.get("type") == "object" and isinstance(node.get("additionalProperties"), dict):
        return "object of strings"
    return node.get("type", "object") + bounds(node)


def resolve(node, root):
    while node.get("$ref", "").startswith("#/definitions/"):
        node = {**root["definitions"][node["$ref"].rsplit("/", 1)[1]],
                **{key: value for key, value in node.items() if key != "$ref"}}
    return node


def row(path, node, engine):
    text = node.get("description", "")
    if "x-api" in node:
        text += f" Needs API {node['x-api']}; an older engine is refused."
    default = f"`{json.dumps(node['default'])}`" if "default" in node else ""
    cells = (f"`{path}`", node["type_text"], default, f"`{engine}`" if engine else "", text)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def members(path, node, root):
    """Rows of what is inside an option that is an object or a list of objects."""
    items = node.get("items", {})
    kinds = items.get("oneOf", [items] if "properties" in items else [])
    for kind in kinds:
        kind = resolve(kind, root)
        prefix = path + "[]"
        if "type" in kind["properties"] and "const" in kind["properties"]["type"]:
            prefix += f" ({kind['properties']['type']['const']})"
        yield from properties(prefix + ".", kind, root, skip={"type"} if len(kinds) > 1 else set())


def properties(prefix, node, root, skip=frozenset()):
    for name, value in node["properties"].items():
        value = resolve(value, root)
        if name in skip:
            continue
        if "properties" in value:
            yield from properties(f"{prefix}{name}.", value, root)
            continue
        value["type_text"] = type_of(value, root)
        yield row(prefix + name, value, value.get("x-engine"))
        yield from members(prefix + name, value, root)


def table(schema):
    return HEAD + "".join(properties("", schema, schema))


# ------------------------------------------------------------------------------ engine fields


def used(node, value, root):
    """Engine fields of the options in value, which is what node describes."""
    node = resolve(node, root)
    if "x-engine" in node:
        yield node["x-engine"]
    if isinstance(value, list):
        kinds = node.get("items", {}).get("oneOf", [node.get("items", {})])
        for element in value:
            for kind in (resolve(kind, root) for kind in kinds):
                const = kind.get("properties", {}).get("type", {}).get("const")
                if const in (None, element["type"] if isinstance(element, dict) and const else None):
                    yield from used(kind, element, root)
    elif isinstance(value, dict):
        for name in value.keys() & node.get("properties", {}).keys():
            yield from used(node["properties"][name], value[name], root)


def described(node, root):
    """All engine fields below node."""
    node = resolve(node, root)
    if "x-engine" in node:
        yield node["x-engine"]
    items = node.get("items", {})
    for kind in items.get("oneOf", [items]) if items else []:
        yield from described(kind, root)
    for child in node.get("properties", {}).values():
        yield from described(child, root)


def has(body, path):
    """Whether body has the member "A.B[].C" or A["b.c"]."""
    at = [body]
    for name, key, each in re.findall(r'(\w+)(?:\["([^"]+)"\])?(\[\])?', path):
        at = [one[name] for one in at if name in one]
        at = [one[key] for one in at if key in one] if key else at
        at = [element for one in at for element in one] if each else at
    return bool(at)


def wrong_fields(schema, bodies):
    in_bodies = set()
    for entry in bodies:
        for path in used(schema, entry["options"], schema):
            in_bodies.add(path)
            if not path.startswith("?") and not has(entry["body"], path):
                yield f"{entry['name']}: no {path}"
    for path in described(schema, schema):
        if not path.startswith("?") and path not in in_bodies:
            yield f"no body has {path}"


def tell(number, name, problems):
    print(f"{'not ok' if problems else 'ok'} {number} - {name}")
    for problem in problems:
        print("# " + problem)


def main(argv):
    write = argv[:1] == ["--write"]
    schema_path, page_path, *rest = map(pathlib.Path, argv[1:] if write else argv)
    schema = json.loads(schema_path.read_text(encoding="utf-8"))
    page = page_path.read_text(encoding="utf-8")
    found = re.search(re.escape(BEGIN) + ".*?" + re.escape(END), page, re.S)
    wanted = BEGIN + table(json.loads(schema_path.read_text(encoding="utf-8"))) + END
    if write:
        page_path.write_text(page.replace(found.group(), wanted), encoding="utf-8")
        return 0
    same = found is not None and found.group() == wanted
    wrong = list(wrong_fields(schema, json.loads(rest[0].read_text(encoding="utf-8"))))
    print("1..2")
    tell(1, "docs/configuration.md has the options of the schema",
         [] if same else [f"make it so: tests/abi/configuration.py --write {schema_path.name} configuration.md"])
    tell(2, "the engine fields are where the golden bodies have the values", wrong)
    return 0 if same and not wrong else 1


sys.exit(main(sys.argv[1:]))
