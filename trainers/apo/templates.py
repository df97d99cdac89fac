"""What a prompt template asks for, and whether a rewritten one may take its place. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from string import Formatter
from xml.etree import ElementTree

FENCE = re.compile(r"\A```[\w-]*\n(?P<text>.*)\n```\Z", re.DOTALL)
POML_EXPRESSION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
POML_LOOP = re.compile(r"\s*(?P<name>\w+)\s+in\s+(?P<items>.+)", re.DOTALL)
TEXT_LITERAL = re.compile(r"'[^']*'|\"[^\"]*\"")
NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
JAVASCRIPT = frozenset({"true", "false", "null", "undefined", "JSON", "Math", "String", "Number", "Object", "typeof"})
"""What POML's expressions, which are JavaScript, have without being given it."""
CONVERSIONS = (None, "s", "r", "a")


class TemplateError(ValueError):
    """A template that its engine cannot read."""


@dataclass(slots=True)
class Placeholders:
    """What a template is to be given.

    Attributes:
        names: of the values.
        uses: how they are used, where that is more than the name alone: `task.question`, `x!r`, `task[0]`. With values
            of another shape it may fail.
    """

    names: set[str] = field(default_factory=set[str])
    uses: set[str] = field(default_factory=set[str])


def placeholders_of(template: str, engine: str) -> Placeholders:
    """What a template needs.

    Raises:
        TemplateError: its engine cannot read it, or there is no such engine.
    """
    readers = {"f-string": _f_string, "jinja": _jinja, "poml": _poml}
    if engine not in readers:
        raise TemplateError(f"there is no engine {engine!r}; choose one of {', '.join(readers)}")
    return readers[engine](template)


def variables_of(template: str, engine: str) -> set[str]:
    """The names that a template needs.

    Raises:
        TemplateError: its engine cannot read it.
    """
    return placeholders_of(template, engine).names


def refusal_of(template: str, former: str, engine: str) -> str | None:
    """Why a rewritten template cannot take the place of the former one: `empty`, `unreadable` or `placeholders`.

    An agent fills in the same names as before: one more would fail each rollout, one less would hide the task. A use
    that the former one does not have may fail on the agent's values.
    """
    if not template.strip():
        return "empty"
    try:
        now = placeholders_of(template, engine)
    except TemplateError:
        return "unreadable"
    before = placeholders_of(former, engine)
    return None if now.names == before.names and now.uses <= before.uses else "placeholders"


def unfenced(text: str) -> str:
    """An answer without the code fence that models like to put around it."""
    stripped = text.strip()
    found = FENCE.match(stripped)
    return found["text"] if found else stripped


def _f_string(template: str) -> Placeholders:
    found = Placeholders()
    try:
        fields = list(_fields(template))
    except ValueError as error:
        raise TemplateError(str(error)) from error
    for name, more in fields:
        root = re.split(r"[.\[]", name)[0]
        if not root.isidentifier():
            raise TemplateError(f"the placeholder {{{name}}} has no name that could be filled in")
        found.names.add(root)
        if more or name != root:
            found.uses.add(name + more)
    return found


def _fields(template: str) -> Iterator[tuple[str, str]]:
    """Each placeholder, and its conversion and format; those within formats too."""
    for _, name, spec, conversion in Formatter().parse(template):
        if name is None:
            continue
        if conversion not in CONVERSIONS:
            raise TemplateError(f"{{{name}!{conversion}}}: the conversions are r, s and a")
        yield name, (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
        yield from _fields(spec or "")


def _jinja(template: str) -> Placeholders:
    import jinja2
    from jinja2 import meta, nodes

    environment = jinja2.Environment(autoescape=False)
    try:
        tree = environment.parse(template)
        environment.compile(template)  # names filters and tests that do not exist
    except jinja2.TemplateError as error:
        raise TemplateError(str(error)) from error
    if any(True for _ in meta.find_referenced_templates(tree)):
        raise TemplateError("it includes or extends another template; a prompt stands alone")
    found = Placeholders(set(meta.find_undeclared_variables(tree)))
    for node in tree.find_all((nodes.Getattr, nodes.Getitem)):
        use = _path(node)
        if use is not None and not use.startswith("loop."):
            found.uses.add(use)
    return found


def _path(node: object) -> str | None:
    """`a.b[0]` as text; None of what begins with something else than a name."""
    from jinja2 import nodes

    if isinstance(node, nodes.Name):
        return node.name
    if isinstance(node, nodes.Getattr):
        before = _path(node.node)
        return None if before is None else f"{before}.{node.attr}"
    if isinstance(node, nodes.Getitem):
        before = _path(node.node)
        key = node.arg.value if isinstance(node.arg, nodes.Const) else "..."
        return None if before is None else f"{before}.{key}"
    return None


def _poml(template: str) -> Placeholders:
    try:
        tree = ElementTree.fromstring(f"<poml>{template}</poml>")
    except ElementTree.ParseError as error:
        raise TemplateError(str(error)) from error
    found = Placeholders()
    _walk(tree, set(JAVASCRIPT), found)
    return found


def _walk(element: ElementTree.Element, known: set[str], found: Placeholders) -> None:
    """Takes what an element and those in it need; `known` are names that it is given by the template itself."""
    inner = set(known)
    loop = POML_LOOP.fullmatch(element.attrib.get("for", ""))
    if loop is not None:
        _use(loop["items"], inner, found)
        inner |= {loop["name"], "loop"}
    for name, value in element.attrib.items():
        if name == "if" or (name == "value" and element.tag == "let"):
            _use(POML_EXPRESSION.sub(r"\1", value), inner, found)
        elif name != "for":
            _use_all(value, inner, found)
    _use_all(element.text, inner, found)
    for child in element:
        _walk(child, inner, found)
        if child.tag == "let" and "name" in child.attrib:
            inner.add(child.attrib["name"])
        _use_all(child.tail, inner, found)


def _use_all(text: str | None, known: set[str], found: Placeholders) -> None:
    for expression in POML_EXPRESSION.findall(text or ""):
        _use(expression, known, found)


def _use(expression: str, known: set[str], found: Placeholders) -> None:
    text = expression.strip()
    found.names.update(name for name in NAME.findall(TEXT_LITERAL.sub("", text)) if name not in known)
    if not text.isidentifier():
        found.uses.add(" ".join(text.split()))
