"""Where rows are read from."""
