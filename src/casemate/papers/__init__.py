"""The source documents to the letter: algorithms and theorems that no capability calls.

`online` is OnlineIC with its three update algorithms; `accuracy` computes what its theorems
promise.
"""
