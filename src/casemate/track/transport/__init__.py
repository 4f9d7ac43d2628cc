"""How reports and orders travel: within one process, through NATS, through Redis.

`network` says what goes over which channel of a broker, and notes what goes wrong; `nats` and
`redis` are such brokers, found by `address`.
"""
