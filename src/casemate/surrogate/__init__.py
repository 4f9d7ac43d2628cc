"""A public stand-in for the table: answers questions, learns from measurements, opens nothing."""
