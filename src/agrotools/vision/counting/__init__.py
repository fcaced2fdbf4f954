"""Things of one kind, one by one: tree tops, round spots."""
