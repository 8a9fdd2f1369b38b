"""What a notebook shows of an object."""

from __future__ import annotations


class ReprHtmlMixin:
    """Gives a class the method that notebooks call; `mlpcore.report.html` draws."""

    def _repr_html_(self) -> str:
        # The only import that points up, so that arithmetic does without what people look at.
        from mlpcore.report.html import to_html

        return to_html(self)
