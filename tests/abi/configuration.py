#!/usr/bin/env python3
"""The table of options in docs/configuration.md, made of abi/schema/sandbox.json; speaks TAP.

  configuration.py SCHEMA PAGE           checks that the page has the schema's table
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


def main(argv):
    write = argv[:1] == ["--write"]
    schema_path, page_path = map(pathlib.Path, argv[1:] if write else argv)
    page = page_path.read_text(encoding="utf-8")
    found = re.search(re.escape(BEGIN) + ".*?" + re.escape(END), page, re.S)
    wanted = BEGIN + table(json.loads(schema_path.read_text(encoding="utf-8"))) + END
    if write:
        page_path.write_text(page.replace(found.group(), wanted), encoding="utf-8")
        return 0
    same = found is not None and found.group() == wanted
    print(f"1..1\n{'ok' if same else 'not ok'} 1 - docs/configuration.md has the options of the schema")
    if not same:
        print(f"# make it so: tests/abi/configuration.py --write {schema_path.name} configuration.md")
    return 0 if same else 1


sys.exit(main(sys.argv[1:]))
