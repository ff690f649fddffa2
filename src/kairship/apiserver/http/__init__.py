"""REST: HTTP in front of the chain.

rest                 one request from its first byte to its reply
routing              which method a verb and a path mean
transcoding          path, query and body become the message that the method takes
json_bounds          bounds depth and size of JSON before it is parsed
replies              replies and errors as JSON, with the headers that every reply has
streamed_response    a response that is written piece by piece; `server_sent_events` and `downloads` use it
browser_sessions     session tokens in cookies
connections          the HTTP server: connections, their limit, and how they are drained
overload_reply       the reply to a connection beyond the limit
api_docs             the OpenAPI document and a page to try it
"""
