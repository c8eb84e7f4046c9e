"""What an editor asks of a text that may be broken: names and their places, what may come next."""
