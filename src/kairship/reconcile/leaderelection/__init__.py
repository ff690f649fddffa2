"""Leader election by a Lease, compatible with client-go.

`elector` runs the work of a leader, `lease_lock` reads and writes the Lease, `lease` has the rules without any I/O,
`leader_term` is what a leader holds while it leads.
"""
