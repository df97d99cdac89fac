"""What a prompt template asks for, and whether a rewritten one may take its place. Pure."""

import re
from string import Formatter
from xml.etree import ElementTree

FENCE = re.compile(r"\A```[\w-]*\n(?P<text>.*)\n```\Z", re.DOTALL)
POML_EXPRESSION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
TEXT_LITERAL = re.compile(r"'[^']*'|\"[^\"]*\"")
NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


class TemplateError(ValueError):
    """A template that its engine cannot read."""


def variables_of(template: str, engine: str) -> set[str]:
    """The names that a template needs.

    Raises:
        TemplateError: its engine cannot read it.
    """
    if engine == "f-string":
        try:
            fields = [field for _, field, _, _ in Formatter().parse(template) if field is not None]
        except ValueError as error:
            raise TemplateError(str(error)) from error
        return {re.split(r"[.\[]", field)[0] for field in fields}
    if engine == "jinja":
        import jinja2
        from jinja2 import meta

        try:
            return set(meta.find_undeclared_variables(jinja2.Environment(autoescape=False).parse(template)))
        except jinja2.TemplateError as error:
            raise TemplateError(str(error)) from error
    try:
        ElementTree.fromstring(f"<poml>{template}</poml>")
    except ElementTree.ParseError as error:
        raise TemplateError(str(error)) from error
    expressions = [TEXT_LITERAL.sub("", expression) for expression in POML_EXPRESSION.findall(template)]
    return {name for expression in expressions for name in NAME.findall(expression)}


def refusal_of(template: str, former: str, engine: str) -> str | None:
    """Why a rewritten template cannot take the place of the former one: `empty`, `unreadable` or `placeholders`."""
    if not template.strip():
        return "empty"
    try:
        now = variables_of(template, engine)
    except TemplateError:
        return "unreadable"
    # An agent fills in the same names as before: one more would fail each rollout, one less would hide the task.
    return None if now == variables_of(former, engine) else "placeholders"


def unfenced(text: str) -> str:
    """An answer without the code fence that models like to put around it."""
    stripped = text.strip()
    found = FENCE.match(stripped)
    return found["text"] if found else stripped
