"""What users may rely on: public modules, their names, signatures, methods and attributes, one line each.

``python tests/architecture/surface.py > tests/architecture/public.txt`` stores them, after a decision to change
them.
"""

import importlib
import inspect
import sys
from pathlib import Path

import mercer

PACKAGE = Path(mercer.__file__).parent


def modules():
    """Public modules: no part of their path begins with an underscore."""
    found = {path.relative_to(PACKAGE.parent).with_suffix("") for path in PACKAGE.rglob("*.py")}
    names = {".".join(path.parts).removesuffix(".__init__") for path in found}
    return sorted(name for name in names if not any(part.startswith("_") for part in name.split(".")))


def contents(module):
    """The public names of a module, and what they stand for."""
    content = importlib.import_module(module)
    return {name: getattr(content, name) for name in sorted(getattr(content, "__all__", ()))}


def signature(thing):
    """Names and defaults of parameters; types are checked by mypy."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return ""
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in parameters if each.name != "self"]
    return str(inspect.Signature(bare))


def members(cls, public):
    """Public methods and attributes that a class has, and its public bases do not have alike."""
    own = [base for base in cls.__mro__ if base.__module__.split(".")[0] == "mercer"]
    known = {id(value) for base in own[1:] if base in public for value in map(base.__dict__.get, vars(base))}
    names = {name for base in own for name in vars(base) if not name.startswith(("_", "set_"))}
    for name in sorted(names):
        if id(inspect.getattr_static(cls, name)) in known:
            continue
        value = inspect.getattr_static(cls, name)
        value = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        yield f".{name}{signature(value) if callable(value) else ''}"


def lines():
    """The surface, one line for each name."""
    public = {thing for module in modules() for thing in contents(module).values() if inspect.isclass(thing)}
    for module in modules():
        for name, thing in contents(module).items():
            if not callable(thing):
                yield f"{module}.{name}"
                continue
            yield f"{module}.{name}{signature(thing)}"
            if inspect.isclass(thing):
                yield from (f"{module}.{name}{member}" for member in members(thing, public))


if __name__ == "__main__":
    sys.stdout.write("\n".join(lines()) + "\n")
