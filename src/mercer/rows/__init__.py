"""Where rows come from, and which of them are the same."""

from mercer.rows.distinct import Distinct, distinct_rows, every_row
from mercer.rows.groups import fold_members

__all__ = ["Distinct", "distinct_rows", "every_row", "fold_members"]
