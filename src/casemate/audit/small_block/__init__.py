"""Small blocks of people: the `model` with its statistics and solutions, and the `report`."""
