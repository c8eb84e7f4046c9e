"""The Model Context Protocol over stdio: the relay, the lock, and a line server of our own."""
