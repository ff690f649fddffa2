"""The ``local`` driver: a Karmada as supervised processes on this machine.

driver     implements the protocol: decides which steps lead from the recorded state to the desired one
local_instance  the steps that create, change, upgrade and restore one instance
bootstrap  the objects inside an instance without which its processes cannot work
instance_record  what is stored on disk about each instance
"""
