"""Adversaries: who decides which site receives the next item.

They see every output of the server and what is public (how many sites there are, which round it
is, how large a report is), never a message, a threshold or a count of the server's.
"""
