"""Leave-one-out predictions of other losses."""
