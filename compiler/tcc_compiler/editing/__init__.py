"""Support for editors, also for incomplete texts: names and their places, completion, renaming."""
