"""Flow control: how much the entrance takes at a time, from whom, and for how long.

limits           every limit with its default, for one worker
fair_queue       which request is served next, among callers and destinations
rate_limit       how often a key (a caller, an address) may do something
streams          the open streams: their number, their owners, and how they are ended
stream_guard     ends streams whose callers have lost the right to them
connection_slots which connections may be open, so that strangers take nobody's place
client_address   the address that a request came from, behind trusted proxies
request_bodies   reads HTTP bodies within bounded memory
"""
