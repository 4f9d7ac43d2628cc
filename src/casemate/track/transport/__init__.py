"""How reports and orders travel: within one process, through NATS, through Redis."""
