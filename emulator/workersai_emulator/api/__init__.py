"""The dialects of the wire, one module each: they turn a request into a call, and an outcome into a reply."""
