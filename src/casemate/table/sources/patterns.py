"""What cells of text look like that are read as a policy's type; the same in every engine.

Blanks around a cell are ignored, save in text. Whole numbers may be written with a fraction of
zeros, and dates with a time of zeros, as programs write them that know numbers or moments only.
"""

LONGEST = 255
"""Characters of a number; a longer one is none."""

WHOLE = "[+-]?[0-9]+([.]0*)?"
PLAIN = "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)"
SCIENTIFIC = f"{PLAIN}[eE][+-]?[0-9]{{1,3}}"
INFINITE = "[+-]?([iI][nN][fF]|[iI][nN][fF][iI][nN][iI][tT][yY])"

DAY = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
TIME = "[ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?"
MIDNIGHT = "[ T]00:00(:00([.]0{1,6})?)?"
OFFSET = " ?(Z|[+-](0[0-9]|1[0-4])(:?[0-5][0-9])?)"

FIRST, LAST = "0001-01-01", "9999-12-31 23:59:59.999999"
"""The moments that Python's calendar holds."""

SMALLEST_INTEGER, LARGEST_INTEGER = -(2**63), 2**63 - 1

SIGNIFICANT = ((10**3, 12), (10**6, 9), (10**9, 6), (10**12, 3))
"""Below each number, how many digits after its point a double is known to: 15 in all."""
