"""Replies to the client.

statuses            errors as `metav1.Status`, which kubectl and client-go understand
foreign_content     contains what instances and members answer, so that browsers do not run it
replies             makes replies: from the index, from errors, from refused upgrades
complete_response   a response whose body is known as a whole, written in one step
response_writer     writes replies to the client, compressed as API servers compress
"""
