"""The work queue of a controller: `queue` itself, the `backoff` of failed keys, and the `token_bucket` that limits the
rate of retries."""
