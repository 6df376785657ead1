"""SCIM 2.0 on the operations port (RFC 7643, RFC 7644): the directory of another system provisions people."""
