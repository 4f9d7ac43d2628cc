"""Trackers that an adaptive adversary breaks; for red-teaming only.

Their bounds hold for items that are chosen before the tracker starts. Somebody who watches the
published count and sends items accordingly (`stop-on-change`) drives their error past any multiple
of what they promise as the number of sites grows. Simulations run them; no tracker offers them.
"""
