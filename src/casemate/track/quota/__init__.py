"""Hard limits shared by many sites: leases of one limit, never more admitted than it allows."""
