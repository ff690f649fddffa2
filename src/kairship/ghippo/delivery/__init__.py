"""Delivery of effective bindings to webhooks.

    webhooks        the receivers, the progress of each, and the batches that are due
    deliverer       sends the batches, one task per webhook
    rejections      the bindings that a receiver cannot store
    plane_webhook   keeps the webhook of the plane's own entrance set up

The protocol and the receiving side are in `kairship.access.delivery`.
"""
