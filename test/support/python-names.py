"""What Python files take from each other, checked without running them: names that are not there, calls that do not fit.

    python python-names.py FOLDER... -- FILE...

Modules are looked for beside a file, then in the folders; others are taken as they are. One fault a line.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# Where a name comes from: a module, or a name in it.
Origin = tuple[Path, str | None]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


class Names:
    """The modules of some folders."""

    def __init__(self, folders: list[Path]):
        self._folders = folders

    def module(self, name: str, beside: Path) -> Path | None:
        for folder in [beside, *self._folders]:
            place = folder.joinpath(*name.split("."))
            for file in (place.with_suffix(".pyi"), place.with_suffix(".py"), place / "__init__.py"):
                if file.is_file():
                    return file
        return None

    def imports(self, path: Path) -> dict[str, Origin | None]:
        """By local name; None for what is not looked into."""
        found: dict[str, Origin | None] = {}
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Import):
                for one in node.names:
                    local, whole = (one.asname, one.name) if one.asname else (one.name.split(".")[0],) * 2
                    module = self.module(whole, path.parent)
                    found[local] = module and (module, None)
            elif isinstance(node, ast.ImportFrom):
                module = self._source(node, path)
                for one in node.names:
                    found[one.asname or one.name] = module and (module, one.name)
        return found

    def _source(self, node: ast.ImportFrom, path: Path) -> Path | None:
        if node.level == 0:
            return self.module(node.module or "", path.parent)
        folder = path.parents[node.level - 1]
        return self.module(node.module, folder) if node.module else folder / "__init__.py"

    def find(self, module: Path, name: str) -> tuple[bool, Definition | None, Path]:
        """Whether a module has the name, and what defines it, in which module."""
        here = parsed(module)
        for node in ast.walk(here):
            if isinstance(node, Definition) and node in here.body and node.name in (name, "__getattr__"):
                return True, node if node.name == name else None, module
        origin = self.imports(module).get(name, False)
        if origin is not False:
            if origin is None or origin[1] is None:
                return True, None, module
            return self.find(origin[0], origin[1])
        stored = {one.id for one in ast.walk(here) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        if name in stored:
            return True, None, module
        is_package = module.name == "__init__.py" and self.module(name, module.parent) is not None
        return is_package, None, module

    def faults(self, path: Path) -> list[str]:
        tree, imports = parsed(path), self.imports(path)
        stored = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        stored |= {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)}
        known = {name: origin for name, origin in imports.items() if origin and name not in stored}
        found: list[str] = []

        def origin_of(node: ast.expr) -> Origin | None:
            if isinstance(node, ast.Name):
                return known.get(node.id)
            if isinstance(node, ast.Attribute) and (place := origin_of(node.value)) and place[1] is None:
                inner = self.module(node.attr, place[0].parent) if place[0].name == "__init__.py" else None
                return (inner, None) if inner else (place[0], node.attr)
            return None

        for node in ast.walk(tree):
            at = f"{path}:{getattr(node, 'lineno', 0)}:"
            if isinstance(node, ast.ImportFrom):
                module = self._source(node, path)
                lacking = [one.name for one in node.names if module and not self.find(module, one.name)[0]]
                found += [f"{at} {node.module} has no {name}" for name in lacking]
            elif isinstance(node, ast.Attribute) and (place := origin_of(node)) and place[1]:
                if not self.find(*place)[0]:
                    found.append(f"{at} {place[0].stem} has no {place[1]}")
            if isinstance(node, ast.Call) and (place := origin_of(node.func)) and place[1]:
                definition = self.find(*place)[1]
                why = definition and misfit(node, definition)
                if why:
                    found.append(f"{at} {place[1]}() {why}")
        return found


def misfit(call: ast.Call, definition: Definition) -> str | None:
    """Why the arguments of a call do not fit."""
    if any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords):
        return None
    shape = shape_of(definition)
    if shape is None:
        return None
    positional, needed, others, any_more, any_named = shape
    given = positional[: len(call.args)] + [str(one.arg) for one in call.keywords]
    if len(call.args) > len(positional) and not any_more:
        return f"takes {len(positional)} arguments, and is given {len(call.args)}"
    unknown = [name for name in given if name not in positional + others]
    if unknown and not any_named:
        return f"has no argument {unknown[0]}"
    lacking = [name for name in needed if name not in given]
    return f"needs {lacking[0]}" if lacking else None


def shape_of(definition: Definition) -> tuple[list[str], list[str], list[str], bool, bool] | None:
    """By place, needed, by name alone, any more by place, any more by name; None: it is not known."""
    if isinstance(definition, ast.ClassDef):
        decorators = [ast.unparse(one) for one in definition.decorator_list]
        if not definition.bases and any(one.startswith("dataclass") for one in decorators):
            fields = [one for one in definition.body if isinstance(one, ast.AnnAssign)]
            names = [ast.unparse(one.target) for one in fields if "ClassVar" not in ast.unparse(one.annotation)]
            needed = [ast.unparse(one.target) for one in fields if one.value is None]
            return names, needed, [], False, any("field(" in ast.unparse(one) for one in fields)
        inits = [one for one in definition.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
        return None if definition.bases or not inits else without_self(inits[0])
    return None if definition.decorator_list else signature(definition.args)


def without_self(init: ast.FunctionDef) -> tuple[list[str], list[str], list[str], bool, bool]:
    positional, needed, *rest = signature(init.args)
    return positional[1:], needed[1:], *rest


def signature(args: ast.arguments) -> tuple[list[str], list[str], list[str], bool, bool]:
    positional = [one.arg for one in [*args.posonlyargs, *args.args]]
    needed = positional[: len(positional) - len(args.defaults)]
    by_name = [one.arg for one in args.kwonlyargs]
    needed_by_name = [one.arg for one, default in zip(args.kwonlyargs, args.kw_defaults) if default is None]
    return positional, needed + needed_by_name, by_name, args.vararg is not None, args.kwarg is not None


if __name__ == "__main__":
    split = sys.argv.index("--")
    names = Names([Path(one) for one in sys.argv[1:split]])
    faults = [fault for file in sys.argv[split + 1 :] for fault in names.faults(Path(file))]
    print("\n".join(faults), end="\n" if faults else "")
