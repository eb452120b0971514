"""What the source says of each field of a model; the documents are made of it."""

import ast
import inspect
from itertools import pairwise

from pydantic import BaseModel


def sentences(model: type[BaseModel]) -> dict[str, str]:
    """Give the text below each field of a model's source."""
    (body,) = (
        it.body for it in ast.parse(inspect.getsource(model)).body if isinstance(it, ast.ClassDef)
    )
    return {
        field.target.id: " ".join(inspect.cleandoc(text.value.value).split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
