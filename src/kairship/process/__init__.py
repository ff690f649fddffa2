"""What the processes of the plane have in common.

logs               JSON logs on stderr
signals            running until SIGTERM or SIGINT
start_error        the error that ends a process before it runs
ops                health, readiness and metrics over HTTP
certificates       the server certificate, reloaded while the process runs
descriptor_limit   the limit of open files
allocation         settings of malloc
slow_disk          detects a disk that blocks the event loop
change_notifier    wakes tasks that wait for a change
cancellation       work in loops that survive failures
loopback           the loopback address
"""
