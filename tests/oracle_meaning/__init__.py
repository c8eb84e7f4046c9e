"""An oracle of the definition: single worlds, all worlds of a history, and random cases."""
